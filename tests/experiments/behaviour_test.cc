// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/behaviour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "experiments/by_prompt.h"
#include "experiments/protocol/unrelated_texts.h"
#include "tests/experiments/fake_setup.h"

/// What `behaviour` says of records that were written by hand, and of arms that are equal.
namespace kvsim::experiments {
namespace {

/// A text of as many tokens as `kl` has numbers, and what was measured along it.
StudyRecords::Unit text(const std::string& part, std::int64_t prompt, std::uint64_t seed,
                        const std::vector<double>& kl, const Json& flip,
                        const std::vector<double>& apart, const std::string& on = "",
                        const std::string& off = "") {
  const std::vector<double> zeros(kl.size(), 0);
  const std::vector<bool> no(kl.size(), false);
  Json forced = {{"kl", kl},
                 {"js", kl},
                 {"on_margin", zeros},
                 {"on_margin_ulps", zeros},
                 {"off_margin", zeros},
                 {"largest_logit_difference", zeros},
                 {"argmax_differs", no},
                 {"top_two_error", zeros}};
  if (!flip.is_null()) forced["argmax_differs"][flip.get<std::size_t>()] = true;
  if (!flip.is_null()) forced["on_margin"][flip.get<std::size_t>()] = 0.25;
  const std::vector<int> tokens(kl.size(), 7);
  return {{part, prompt, seed, 0},
          {{"on", {{"tokens", tokens}, {"text", on}}},
           {"off", {{"tokens", tokens}, {"text", off}}},
           {"answer", "so it is #### 12"},
           {"flip", flip},
           {"forced", std::move(forced)},
           {"kl_apart", apart},
           {"js_apart", apart}}};
}

StudyRecords records_of(std::vector<StudyRecords::Unit> units) {
  return {{{"new_tokens", 6}}, std::move(units)};
}

Json result_of(const StudyRecords& records) {
  const auto summary = make_behaviour()->summarize(records);
  EXPECT_TRUE(summary) << summary.error().message;
  return summary ? summary->result : Json();
}

TEST(Behaviour, SeparatesStepsByTextPartAndFork) {
  const Json result = result_of(records_of({
      text("greedy", 0, 0, {1, 2, 3, 4, 5, 60}, 2, {20, 30, 40}),
      text("greedy", 1, 0, {7, 8, 9}, nullptr, {}),
      {{"greedy, unrelated", 0, 0, 0}, {{"kl", {40, 20}}}},
      {{"greedy, unrelated", 1, 0, 0}, {{"kl", {60, 40}}}},
  }))["greedy"];
  EXPECT_EQ(result["texts"], 2);
  EXPECT_EQ(result["parted"], 1);
  EXPECT_EQ(result["full_length"], 1);
  EXPECT_EQ(result["median_flip"], 2);
  const Json& same = result["same_tokens"];
  EXPECT_EQ(same["all"]["steps"], 9);
  EXPECT_EQ(same["all"]["kl"]["value"], 11);                        // 99 / 9
  EXPECT_NEAR(same["first_third"]["kl"]["value"], 10.0 / 3, 1e-7);  // 1 2 | 7
  EXPECT_EQ(same["second_third"]["kl"]["value"], 5);                // 3 4 | 8
  EXPECT_NEAR(same["last_third"]["kl"]["value"], 74.0 / 3, 1e-7);   // 5 60 | 9
  EXPECT_EQ(same["up_to_the_fork"]["kl"]["value"], 2);              // 1 2 3
  EXPECT_EQ(same["behind_the_fork"]["kl"]["value"], 23);            // 4 5 60
  EXPECT_EQ(same["all"]["above_reported"]["value"], 0.111111111);   // nine digits
  EXPECT_EQ(same["largest_kl"], 60);
  EXPECT_EQ(same["argmax_differs"], 1);
  EXPECT_EQ(same["largest_flip_margin"], 0.25);
  const Json& own = result["own_tokens"];
  EXPECT_NEAR(own["all"]["kl"]["value"], 40.0 / 3, 1e-7);  // 1 2 3 20 30 40 | 7 8 9
  EXPECT_EQ(own["up_to_the_fork"]["kl"]["value"], 2);
  EXPECT_EQ(own["behind_the_fork"]["kl"]["value"], 30);
  EXPECT_EQ(own["behind_the_fork"]["above_reported"]["value"], 1);
  EXPECT_EQ(own["js_behind_the_fork"]["value"], 30);
  EXPECT_EQ(result["plateau"]["after_flip"]["value"], 30);
  EXPECT_EQ(result["plateau"]["unrelated"]["value"], 40);
  EXPECT_TRUE(result["plateau"]["ratio"].is_null());  // one prompt that parted
}

TEST(Behaviour, CountsRightAnswersByPrompt) {
  const std::string right = " ... #### 12";
  const std::string wrong = " ... 12 #### 13";
  std::vector<StudyRecords::Unit> units;
  // Greedy: with the cache alone 6 prompts are right, without it alone 1; p by hand 2 · 8/2^7.
  for (std::int64_t prompt = 0; prompt < 10; ++prompt) {
    units.push_back(text("greedy", prompt, 0, {0}, nullptr, {}, prompt < 6 ? right : wrong,
                         prompt == 6 ? right : wrong));
  }
  // Two seeds: prompt 0 always with and sometimes without, prompt 1 sometimes with and without.
  for (const std::uint64_t seed : {1U, 2U}) {
    units.push_back(
        text("top-k", 0, seed, {0}, nullptr, {}, right, seed == 1 ? right : "12 or 13"));
    units.push_back(text("top-k", 1, seed, {0}, nullptr, {}, seed == 1 ? right : wrong,
                         seed == 2 ? right : "12"));
  }
  const Json result = result_of(records_of(std::move(units)));
  const Json& greedy = result["greedy"]["answers"]["marked"];
  EXPECT_EQ(greedy["on"]["value"], 0.6);
  EXPECT_EQ(greedy["off"]["value"], 0.1);
  EXPECT_EQ(greedy["better_on"], 6);
  EXPECT_EQ(greedy["better_off"], 1);
  EXPECT_EQ(greedy["p"], 0.125);
  EXPECT_EQ(greedy["corrected_p"], 0.25);
  EXPECT_EQ(greedy["difference"]["value"], 0.5);
  EXPECT_TRUE(result["greedy"]["consistency"].is_null());

  const Json& random = result["top-k"]["answers"]["marked"];
  EXPECT_EQ(random["on"]["value"], 0.75);
  EXPECT_EQ(random["off"]["value"], 0.5);
  EXPECT_EQ(random["better_on"], 1);
  EXPECT_EQ(random["better_off"], 0);
  const Json& marked = result["top-k"]["consistency"]["marked"];
  EXPECT_EQ(marked["on"], (Json{{"always", 1}, {"sometimes", 1}, {"never", 0}}));
  EXPECT_EQ(marked["off"], (Json{{"always", 0}, {"sometimes", 2}, {"never", 0}}));
  EXPECT_EQ(marked["changed"], 1);
  // The last number is 13 of "12 or 13" and 12 of "12".
  const Json& last = result["top-k"]["consistency"]["last_number"];
  EXPECT_EQ(last["off"], (Json{{"always", 1}, {"sometimes", 1}, {"never", 0}}));
}

TEST(Behaviour, OfEqualArmsIsNothing) {
  test::FakeSetup fake(3);
  fake.setup.on = test::arm_of("live:invariant=yes");
  fake.setup.off = test::arm_of("off:invariant=yes");
  const auto study = make_behaviour();
  StudyRecords records{{{"new_tokens", 6}}, {}};
  const auto units = study->units(fake.setup);
  ASSERT_TRUE(units);
  for (const StudyUnit& unit : *units) {
    records.units.push_back({unit, study->compute(fake.setup, unit).value()});
  }
  const Json result = result_of(records);
  for (const char* strategy : {"greedy", "top-k"}) {
    EXPECT_EQ(result[strategy]["parted"], 0);
    EXPECT_EQ(result[strategy]["median_flip"], nullptr);
    EXPECT_EQ(result[strategy]["same_tokens"]["largest_kl"], 0);
    EXPECT_EQ(result[strategy]["own_tokens"]["all"]["kl"]["value"], 0);
    EXPECT_EQ(result[strategy]["own_tokens"]["behind_the_fork"]["kl"], nullptr);
    EXPECT_GT(result[strategy]["plateau"]["unrelated"]["value"], 0.1);
    EXPECT_EQ(result[strategy]["plateau"]["ratio"], nullptr);
  }
}

TEST(UnrelatedDivergence, OfAPromptAndItselfIsZero) {
  const test::FakeSetup fake(20);
  const auto arm = prepare(fake.engine, fake.setup.on);
  ASSERT_TRUE(arm);
  const PairTextOptions options{
      .sampling = {}, .new_tokens = 6, .stop_tokens = fake.engine.fake.stop_tokens};
  for (const StudyPrompt& each : fake.setup.prompts) {
    const auto own = compare_texts(*arm, *arm, each.prompt.ids, options);
    const auto same = unrelated_divergence(*arm, each.prompt, each.prompt, options);
    ASSERT_TRUE(own && same);
    EXPECT_EQ(*same, std::vector<double>(own->first_tokens.size(), 0));
    const auto other =
        unrelated_divergence(*arm, each.prompt, fake.setup.prompts.front().prompt, options);
    ASSERT_TRUE(other);
    EXPECT_LE(other->size(), same->size());
    if (&each == &fake.setup.prompts.front()) continue;
    for (const double nats : *other) EXPECT_GT(nats, 0);
  }
}

TEST(NumbersByPrompt, HasNoIntervalOfOnePromptOrOneValue) {
  NumbersByPrompt numbers;
  EXPECT_FALSE(numbers.mean());
  numbers.add(3, 1);
  numbers.add(3, 2);
  numbers.add_prompt(4);
  ASSERT_TRUE(numbers.mean());
  EXPECT_EQ(numbers.mean()->value, 1.5);
  EXPECT_TRUE(std::isnan(numbers.mean()->low));
  numbers.add(4, 6);
  EXPECT_EQ(numbers.mean()->value, 3);
  EXPECT_EQ(numbers.mean()->low, 1.5);  // prompt 3 drawn twice
  EXPECT_EQ(numbers.mean()->high, 6);
}

}  // namespace
}  // namespace kvsim::experiments
