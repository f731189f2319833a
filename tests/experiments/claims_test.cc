// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/findings/claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace kvsim::experiments {
namespace {

Judgement judged(std::string_view claim, const char* result) {
  const auto row = std::ranges::find_if(
      claim_rows(), [&](const ClaimRow& each) { return each.claim.find(claim) != claim.npos; });
  EXPECT_NE(row, claim_rows().end()) << claim;
  return row->judge(Json::parse(result));
}

TEST(Claims, NothingMeasuredCannotTell) {
  for (const ClaimRow& row : claim_rows()) {
    EXPECT_EQ(row.judge(Json::object()).verdict, Verdict::cannot_tell) << row.claim;
    EXPECT_EQ(row.judge(Json(nullptr)).verdict, Verdict::cannot_tell) << row.claim;
  }
}

TEST(Claims, LargeDivergenceIsExplainedByTheFork) {
  // The same texts: KL of 12 behind the fork alone, or at every step.
  const Judgement fork = judged("KL above 10", R"({"greedy": {
      "same_tokens": {"steps": 200, "kl": {"value": 1e-3, "low": 0, "high": 1}},
      "own_tokens": {"all": {"above_reported": {"value": 0.25, "low": 0, "high": 1}},
                     "behind_the_fork": {"kl": {"value": 12, "low": 0, "high": 20},
                                         "above_reported": {"value": 0.5}}}}})");
  EXPECT_EQ(fork.verdict, Verdict::explained);
  EXPECT_NE(fork.measured.find("0.001 nats over 200 steps"), std::string::npos) << fork.measured;
  EXPECT_NE(fork.measured.find("behind the fork 12, above 10 at 50 %"), std::string::npos)
      << fork.measured;
  const Judgement every = judged("KL above 10", R"({"greedy": {
      "same_tokens": {"steps": 200, "kl": {"value": 12, "low": 0, "high": 1}},
      "own_tokens": {"all": {"above_reported": {"value": 1, "low": 0, "high": 1}}}}})");
  EXPECT_EQ(every.verdict, Verdict::reproduced);
  const Judgement none = judged("KL above 10", R"({"greedy": {
      "same_tokens": {"steps": 200, "kl": {"value": 1e-3, "low": 0, "high": 1}},
      "own_tokens": {"all": {"above_reported": {"value": 0, "low": 0, "high": 1}},
                     "behind_the_fork": {"kl": null, "above_reported": null}}}})");
  EXPECT_EQ(none.verdict, Verdict::not_reproduced);
}

TEST(Claims, EveryText) {
  EXPECT_EQ(judged("every text", R"({"top-k": {"texts": 9, "parted": 9,
      "diverged": {"value": 1, "low": 0.7, "high": 1}}})")
                .verdict,
            Verdict::reproduced);
  EXPECT_EQ(judged("every text", R"({"top-k": {"texts": 9, "parted": 8,
      "diverged": {"value": 0.9, "low": 0.6, "high": 1}}})")
                .verdict,
            Verdict::not_reproduced);
}

TEST(Claims, BetterAnswersNeedATest) {
  const auto verdict = [](int on, int off, double p) {
    const Json answers = {{"texts", 100},    {"on", 0.5},         {"off", 0.4},
                          {"better_on", on}, {"better_off", off}, {"p", p}};
    return judged("more accurate",
                  Json{{"greedy", {{"answers", {{"last_number", answers}}}}}}.dump().c_str())
        .verdict;
  };
  EXPECT_EQ(verdict(12, 2, 0.01), Verdict::reproduced);
  EXPECT_EQ(verdict(12, 6, 0.2), Verdict::not_reproduced);
  EXPECT_EQ(verdict(2, 12, 0.01), Verdict::not_reproduced);
  EXPECT_EQ(verdict(0, 0, 1), Verdict::cannot_tell);
}

TEST(Claims, EarlyForks) {
  const auto verdict = [](double own_p, double same_ratio, double same_p, int texts) {
    const Json own = {{"early_texts", texts}, {"late_texts", 8}, {"ratio", 3}, {"p", own_p}};
    const Json same = {{"ratio", same_ratio}, {"p", same_p}};
    const Json order = {{"own_tokens", {{"early_and_late", own}}},
                        {"same_tokens", {{"early_and_late", same}}}};
    return judged("part early", Json{{"order", {{"cache", order}}}}.dump().c_str()).verdict;
  };
  EXPECT_EQ(verdict(0.01, 1.02, 0.7, 9), Verdict::explained);
  EXPECT_EQ(verdict(0.01, 1.5, 0.01, 9), Verdict::reproduced);
  EXPECT_EQ(verdict(0.4, 1.5, 0.01, 9), Verdict::not_reproduced);
  EXPECT_EQ(verdict(0.01, 1.5, 0.01, 4), Verdict::cannot_tell);
}

TEST(Claims, FlatDriftIsOfHeadsWith256Elements) {
  const auto verdict = [](int head_dim, double low) {
    const Json relative = {{"ratio", 3}, {"ratio_interval", {{"low", low}, {"high", 9}}}};
    return judged("flat with",
                  Json{{"head_dim", head_dim}, {"generated", {{"depth", {{"relative", relative}}}}}}
                      .dump()
                      .c_str())
        .verdict;
  };
  EXPECT_EQ(verdict(256, 0.8), Verdict::reproduced);
  EXPECT_EQ(verdict(256, 2), Verdict::not_reproduced);
  EXPECT_EQ(verdict(64, 0.8), Verdict::cannot_tell);
}

TEST(Claims, ErrorAndLength) {
  const auto verdict = [](double stored, double summed) {
    const Json attention = {{"p_output", {{"exponent", stored}, {"16", 3e-4}, {"128", 3e-4}}},
                            {"half", {{"exponent", summed}}}};
    return judged("0.036 %", Json{{"lengths", {{"attention", attention}}}}.dump().c_str()).verdict;
  };
  EXPECT_EQ(verdict(0.02, 0.5), Verdict::explained);
  EXPECT_EQ(verdict(0.02, 0.05), Verdict::reproduced);
  EXPECT_EQ(verdict(0.5, 0.5), Verdict::not_reproduced);
}

TEST(Claims, OrdersOfMagnitude) {
  const auto verdict = [](double single) {
    const Json formats = {{"binary16", {{"kl", 1e-5}}},
                          {"binary32", {{"kl", single}, {"kl_binary32", 1e-7}}}};
    return judged("eight orders", Json{{"formats", formats}}.dump().c_str()).verdict;
  };
  EXPECT_EQ(verdict(1e-12), Verdict::explained);
  EXPECT_EQ(verdict(1e-13), Verdict::reproduced);
  EXPECT_EQ(verdict(0), Verdict::cannot_tell);
}

TEST(Claims, GroupedQueries) {
  const auto verdict = [](double low, double high) {
    const Json trend = {{"spearman", {{"value", 0.5}, {"low", low}, {"high", high}}}};
    const Json values =
        Json::array({{{"value", 1}, {"first", 1e-3}}, {{"value", 8}, {"first", 2e-3}}});
    return judged("GQA", Json{{"R", {{"values", values}, {"trend", trend}}}}.dump().c_str())
        .verdict;
  };
  EXPECT_EQ(verdict(0.2, 0.8), Verdict::reproduced);
  EXPECT_EQ(verdict(-0.2, 0.8), Verdict::not_reproduced);
}

TEST(Claims, Patches) {
  const auto patch = [](double step, double free) {
    const Json last = {{"step_kl", {{"mean", step}, {"defined", 4}}},
                       {"free_kl", {{"mean", free}}}};
    const Json first = {{"step_kl", {{"mean", 0}, {"defined", 4}}}, {"free_kl", {{"mean", 0}}}};
    return judged("recovers nothing",
                  Json{{"first_step", {{"hiddens", {{"0", first}, {"1", last}}}}}}.dump().c_str())
        .verdict;
  };
  EXPECT_EQ(patch(100, -5), Verdict::explained);
  EXPECT_EQ(patch(1, -5), Verdict::reproduced);
  EXPECT_EQ(patch(100, 99), Verdict::not_reproduced);
}

TEST(Claims, Transplants) {
  const auto verdict = [](double live, double one_shot) {
    const auto part = [](double pooled) {
      const Json follows = {{"successes", 3}, {"trials", 3}};
      return Json{{"part", {{"K and V", {{"pooled", pooled}, {"follows", follows}}}}}};
    };
    const Json transplant = {{"live_takes", part(live)}, {"one_shot_takes", part(one_shot)}};
    return judged("holds the cause", Json{{"transplant", transplant}}.dump().c_str()).verdict;
  };
  EXPECT_EQ(verdict(100, 99.9), Verdict::reproduced);
  EXPECT_EQ(verdict(100, 30), Verdict::not_reproduced);
}

TEST(Claims, TableHasTheStudiesThatHaveResults) {
  const Json behaviour = Json::parse(R"({"greedy": {"texts": 9, "parted": 9,
      "diverged": {"value": 1, "low": 0.7, "high": 1}}})");
  const JudgedClaims all = judge_claims(
      [&](std::string_view study) { return study == "behaviour" ? &behaviour : nullptr; });
  ASSERT_EQ(all.result.size(), 3U);
  EXPECT_EQ(all.table.rows.size(), 3U);
  EXPECT_EQ(all.result.at(1).at("verdict"), "reproduced");
  EXPECT_EQ(all.result.at(2).at("measured"), "not measured");
  EXPECT_EQ(all.table.notes.at(1), "2: 9 of 9 texts part (70.0 to 100.0 %)");
}

}  // namespace
}  // namespace kvsim::experiments
