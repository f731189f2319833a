// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/localise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/protocol/forks.h"
#include "experiments/studies/localise_parts.h"
#include "experiments/studies/localise_patches.h"
#include "experiments/tables.h"
#include "tests/experiments/sim_setup.h"

/// Patches on a small model: what must be exact, and what the summary makes of numbers.
namespace kvsim::experiments {
namespace {

/// Both arms with sums in an order that follows the number of rows.
constexpr const char* settings = "dispatch=cpu,storage=bf16,head=f32";

double kl_of(const Json& direction, std::string_view group, std::string_view name) {
  for (const Json& row : direction.at(group)) {
    if (row.at("name") == name) return *number_of(row.at("kl"));
  }
  ADD_FAILURE() << group << ' ' << name;
  return -1;
}

TEST(Localise, ForkChecksAreExactAndLayersAddUp) {
  const test::SimSetup sim(settings);
  int differing = 0;
  int partial = 0;
  for (const StudyPrompt& prompt : sim.setup.prompts) {
    const auto measured = measure_fork(sim.setup, prompt);
    ASSERT_TRUE(measured) << measured.error().message;
    const Json& fork = measured->at("fork");
    EXPECT_GE(fork.at("step"), 2);
    EXPECT_EQ(fork.at("cached_rows"), 39 + fork.at("step").get<int>());
    for (const char* name : {"live_takes", "one_shot_takes"}) {
      const Json& direction = fork.at(name);
      const double base = *number_of(direction.at("kl_base"));
      if (base > 0) ++differing;
      EXPECT_LT(base, 1e-2);
      EXPECT_EQ(kl_of(direction, "check", "own state put back"), base);
      EXPECT_EQ(kl_of(direction, "check", "K, V and hidden states"), 0);
      EXPECT_EQ(kl_of(direction, "part", "K and V"), 0);
      EXPECT_EQ(kl_of(direction, "part", "hidden states of all layers"), 0);
      EXPECT_EQ(kl_of(direction, "layers", "2"), 0);
      EXPECT_EQ(kl_of(direction, "hidden", "2"), 0);
      // The first layers' K and V reach the pass through the hidden state behind them alone.
      EXPECT_EQ(kl_of(direction, "layers", "0"), kl_of(direction, "hidden", "0"));
      EXPECT_EQ(kl_of(direction, "layers", "1"), kl_of(direction, "hidden", "1"));
      EXPECT_EQ(kl_of(direction, "layers", "0"), kl_of(direction, "layer", "0"));
      const double keys = kl_of(direction, "part", "K");
      if (keys != 0 && keys != base) ++partial;
    }
    // The other cache's text behind the fork is that of all K and V.
    const Json& all = fork.at("live_takes").at("part").front();
    EXPECT_EQ(all.at("name"), "K and V");
    EXPECT_EQ(all.at("continuation"), fork.at("one_shot").at("continuation"));
  }
  EXPECT_GT(differing, 0);
  EXPECT_GT(partial, 0);
}

TEST(Localise, FirstStepIsRestoredByTheLastLayerWhateverTheMeasureSays) {
  const test::SimSetup sim(settings, ",attention.decode=torch-cpu-eager");
  int differing = 0;
  for (const StudyPrompt& prompt : sim.setup.prompts) {
    const auto measured = measure_first_step(sim.setup, prompt);
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_EQ(measured->at("steps"), 15);
    const Json& base = measured->at("base");
    const Json& own = measured->at("check").front();
    for (const char* field : {"step_kl", "forced_kl", "free_kl", "flip"}) {
      EXPECT_EQ(own.at(field), base.at(field)) << field;
    }
    for (const char* group : {"hidden", "hiddens"}) {
      const Json& last = measured->at(group).back();
      EXPECT_EQ(last.at("name"), "2");
      EXPECT_EQ(last.at("step_kl"), 0.0);
      if (base.at("step_kl") == 0.0) continue;
      EXPECT_GT(*number_of(last.at("forced_kl")), 0);  // the steps behind still differ
      ++differing;
    }
  }
  EXPECT_GT(differing, 0);
}

TEST(Localise, ForkIsTheStepOfTheSmallestMarginThatParts) {
  const test::SimSetup sim(settings);
  const auto live = prepare(*sim.engine, sim.setup.on);
  const auto rebuilt = prepare(*sim.engine, one_shot_arm(sim.setup.off));
  ASSERT_TRUE(live && rebuilt);
  const std::vector<TokenId>& ids = sim.setup.prompts[0].prompt.ids;
  const auto found = find_fork(*live, *rebuilt, ids, {.new_tokens = 12});
  ASSERT_TRUE(found && *found);
  const ForkPair& pair = **found;
  // Its passes are those of the arms themselves, along the same tokens.
  auto text = live->open(ids, 12);
  auto once = rebuilt->open(ids, 12);
  ASSERT_TRUE(text && once);
  for (std::size_t i = ids.size(); i + 1 < pair.live.tokens.size(); ++i) {
    ASSERT_TRUE(text->next({}));
    text->feed(pair.live.tokens[i]);
    once->feed(pair.live.tokens[i]);
  }
  ASSERT_TRUE(text->next({}) && once->next({}));
  text->feed(pair.live.tokens.back());
  once->feed(pair.live.tokens.back());
  EXPECT_EQ(text->next({})->logits, pair.live_pass.logits);
  EXPECT_EQ(once->next({})->logits, pair.rebuilt_pass.logits);
  // Too short a text has none.
  const auto none = find_fork(*live, *rebuilt, ids, {.new_tokens = 2});
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Localise, PatchesOfTheFirstStepAreEvenlySpaced) {
  std::vector<std::string> names;
  for (const NamedPatch& patch : first_step_patches(30)) {
    if (patch.group == "hidden") names.push_back(patch.name);
  }
  EXPECT_THAT(names, testing::ElementsAre("2", "6", "10", "14", "17", "21", "25", "29"));
  EXPECT_EQ(first_step_patches(3).size(), 7U);
}

StudyRecords::Unit fork_unit(double base, double keys, bool parts, int key_token) {
  const auto direction = [&](int own, int other) {
    return Json{{"kl_base", base},
                {"check",
                 {{{"name", "own state put back"}, {"kl", base}, {"token", own}},
                  {{"name", "K, V and hidden states"}, {"kl", 0.0}, {"token", other}}}},
                {"part",
                 {{{"name", "K and V"}, {"kl", 0.0}, {"token", other}},
                  {{"name", "K"}, {"kl", keys}, {"token", key_token}}}},
                {"layer", {{{"name", "0"}, {"kl", keys}, {"token", own}}}}};
  };
  const int other = parts ? 2 : 1;
  return {{std::string(localise_fork_part), 0, 0, 0},
          {{"fork",
            {{"parts", parts},
             {"live", {{"token", 1}, {"continuation", {1, 5}}}},
             {"one_shot", {{"token", other}, {"continuation", {other, 5}}}},
             {"live_takes", direction(1, other)},
             {"one_shot_takes", direction(other, 1)}}}}};
}

TEST(Localise, SummaryCountsWhatFollows) {
  StudyRecords records;
  records.units = {fork_unit(2, 1, true, 2),
                   fork_unit(6, 3, true, 1),
                   fork_unit(0, 0, false, 1),
                   {{std::string(localise_fork_part), 0, 0, 0}, {{"fork", nullptr}}}};
  const auto summary = make_localise()->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  const Json& result = summary->result.at("transplant");
  EXPECT_EQ(result.at("forks"), 3);
  EXPECT_EQ(result.at("parting"), 2);
  EXPECT_EQ(result.at("without_fork"), 1);
  EXPECT_EQ(result.at("equal_logits"), 1);
  EXPECT_EQ(result.at("checks").at("patches"), 12);
  EXPECT_EQ(result.at("checks").at("exact"), 12);
  const Json& keys = result.at("live_takes").at("part").at("K");
  EXPECT_EQ(keys.at("defined"), 2);
  EXPECT_EQ(keys.at("undefined"), 1);
  EXPECT_EQ(keys.at("pooled").at("value"), 50.0);
  EXPECT_EQ(keys.at("follows").at("successes"), 1);  // one of two chose token 2
  EXPECT_EQ(keys.at("follows").at("trials"), 2);
  const Json& back = result.at("one_shot_takes").at("part").at("K").at("follows");
  EXPECT_EQ(back.at("successes"), 1);  // and the other one token 1
  EXPECT_EQ(result.at("live_takes").at("part").at("K and V").at("pooled").at("low"), 100.0);
  EXPECT_THAT(summary->headline, testing::HasSubstr("100 %"));
  EXPECT_THAT(summary->headline, testing::HasSubstr("follow them at 2 of 2 forks"));
}

StudyRecords::Unit first_step_unit(double step, double free, Json flip, double patched,
                                   Json patched_flip) {
  const Json base = {
      {"step_kl", step}, {"forced_kl", step}, {"free_kl", free}, {"flip", std::move(flip)}};
  const Json row = {{"name", "3"},
                    {"step_kl", 0.0},
                    {"forced_kl", step / 2},
                    {"free_kl", patched},
                    {"flip", std::move(patched_flip)}};
  return {{std::string(localise_first_step_part), 0, 0, 0},
          {{"steps", 9}, {"layers", 4}, {"base", base}, {"hidden", {row}}}};
}

TEST(Localise, SummaryKeepsTheMeasuresApart) {
  StudyRecords records;
  records.units = {first_step_unit(1, 4, 5, 8, 2), first_step_unit(1, 8, 2, 4, 5),
                   first_step_unit(1, 1, nullptr, 1, nullptr)};
  const auto summary = make_localise()->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  const Json& hidden = summary->result.at("first_step").at("hidden").at("3");
  EXPECT_EQ(hidden.at("step_kl").at("pooled").at("value"), 100.0);
  EXPECT_EQ(hidden.at("forced_kl").at("pooled").at("value"), 50.0);
  EXPECT_EQ(hidden.at("free_kl").at("mean").at("value"), (-100.0 + 50 + 0) / 3);
  EXPECT_EQ(hidden.at("parted"), 2);
  EXPECT_EQ(hidden.at("earlier"), 1);
  EXPECT_EQ(hidden.at("later"), 1);
}

}  // namespace
}  // namespace kvsim::experiments
