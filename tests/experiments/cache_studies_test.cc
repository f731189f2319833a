// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/studies/high_precision_cache.h"
#include "experiments/studies/noise.h"
#include "experiments/studies/refresh.h"
#include "experiments/studies/replay.h"
#include "experiments/tables.h"
#include "tests/experiments/fake_setup.h"
#include "tests/experiments/sim_setup.h"

/// Studies of what a cache holds, on a small model: what must be exact, and what summaries make of
/// numbers.
namespace kvsim::experiments {
namespace {

constexpr const char* settings = "dispatch=cpu,storage=bf16,head=f32";

/// The records of every piece of work.
StudyRecords records_of(const Study& study, const StudySetup& setup) {
  StudyRecords records;
  const auto units = study.units(setup);
  EXPECT_TRUE(units);
  for (const StudyUnit& unit : *units) {
    Result<Json> values = study.compute(setup, unit);
    EXPECT_TRUE(values) << values.error().message;
    if (values) records.units.push_back({unit, std::move(*values)});
  }
  return records;
}

TEST(Replay, ReplicasAreExactAndInvariantKernelsAlways) {
  test::SimSetup sim(settings);
  sim.setup.prompts.resize(2);
  const auto study = make_replay();
  const StudyRecords records = records_of(*study, sim.setup);
  const auto summary = study->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  const Json& usual = summary->result.at("usual");
  for (const char* way : {"replica", "save and restore"}) {
    EXPECT_EQ(usual.at(way).at("equal_state"), 8);  // four steps of two prompts
    EXPECT_EQ(usual.at(way).at("equal_logits"), 8);
    EXPECT_EQ(usual.at(way).at("turned"), 0);
  }
  EXPECT_LT(usual.at("one pass").at("equal_state"), 8);
  EXPECT_EQ(summary->result.at("batch_invariant_exact"), true);
  EXPECT_EQ(summary->result.at("batch-invariant").at("sent again").at("equal_state"), 8);
}

Json way(const char* name, std::vector<int> layers, double kl, Json parts) {
  return {{"name", name},
          {"key_layers", layers},
          {"value_layers", Json::array()},
          {"equal_logits", kl == 0},
          {"kl", kl},
          {"parts", std::move(parts)}};
}

TEST(Replay, SummarySubtractsTheReplicasFloor) {
  const Json first = {{"ways", {way("replica", {}, 0, nullptr), way("sent again", {2}, 1, 3)}}};
  const Json second = {{"ways", {way("replica", {}, 0, 5), way("sent again", {1}, 3, 0)}}};
  StudyRecords records;
  records.units = {{{"usual", 0, 0, 0}, {{"pivots", {first, second}}}},
                   {{"usual", 1, 0, 0}, {{"pivots", {first}}}},
                   {{"batch-invariant", 0, 0, 0}, {{"left_out", "none here"}}}};
  const auto summary = make_replay()->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  const Json& again = summary->result.at("usual").at("sent again");
  EXPECT_EQ(again.at("turned"), 3);
  EXPECT_EQ(again.at("first_layer"), 1.0);
  EXPECT_EQ(again.at("kl"), 5.0 / 3);
  // 1, 0 of the first prompt and 1 of the second; draws of one prompt twice give 1/2 and 1.
  EXPECT_NEAR(again.at("above_floor").at("value").get<double>(), 2.0 / 3, 1e-9);
  EXPECT_EQ(again.at("above_floor").at("low"), 0.5);
  EXPECT_EQ(again.at("above_floor").at("high"), 1.0);
  EXPECT_EQ(summary->result.at("batch-invariant").at("left_out"), "none here");
  EXPECT_THAT(summary->tables.front().notes.back(), testing::HasSubstr("none here"));
}

TEST(Noise, OfTheRealPathsSizeIsAsLarge) {
  test::SimSetup sim(settings);
  sim.setup.prompts.resize(2);
  const auto study = make_noise();
  const auto summary = study->summarize(records_of(*study, sim.setup));
  ASSERT_TRUE(summary) << summary.error().message;
  const double real = summary->result.at("real path").at("relative_l2");
  const double matched = summary->result.at("noise of its size").at("relative_l2");
  EXPECT_GT(real, 0);
  EXPECT_GE(matched, real);
  EXPECT_LT(matched, 1.5 * real);
  // Steps of bfloat16 are 2^-8 to 2^-7 of a number; of two numbers in one binade the root mean
  // square of step ÷ size lies between.
  const double one = summary->result.at("1 ulp").at("relative_l2");
  EXPECT_GT(one, 0x1p-8);
  EXPECT_LT(one, 0x1p-7);
  EXPECT_NEAR(summary->result.at("2 ulp").at("relative_l2").get<double>() / one, 2, 0.02);
  EXPECT_NEAR(summary->result.at("1/2 ulp").at("relative_l2").get<double>() / one, 0.7071, 0.05);
}

Json noise_path(const char* name, double kl, Json parts) {
  return {{"name", name}, {"kl", kl},          {"parts", std::move(parts)},
          {"squares", 1}, {"norm_squares", 4}, {"differing", 1},
          {"numbers", 2}};
}

TEST(Noise, SummaryComparesPrompts) {
  const auto unit = [](Json real, Json matched) {
    const Json paths = {noise_path("real path", 1, std::move(real)),
                        noise_path("noise of its size", 3, std::move(matched))};
    return StudyRecords::Unit{{"forks", 0, 0, 0}, {{"forks", {{{"paths", paths}}}}}};
  };
  StudyRecords records;
  records.units = {unit(0, 0), unit(4, nullptr), unit(nullptr, nullptr), unit(2, nullptr)};
  const auto summary = make_noise()->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  const Json& matched = summary->result.at("noise of its size");
  EXPECT_EQ(summary->result.at("real path").at("turned_forks"), 3);
  EXPECT_EQ(matched.at("turned_forks"), 1);
  EXPECT_EQ(matched.at("only_real_path"), 2);
  EXPECT_EQ(matched.at("only_here"), 0);
  EXPECT_EQ(matched.at("p"), 0.5);  // two of two on one side of a fair coin
  EXPECT_EQ(matched.at("relative_l2"), 0.5);
  EXPECT_EQ(matched.at("kl").at("value"), 3.0);
}

TEST(Refresh, ForEveryTokenIsNoCacheAndNeverIsLive) {
  const test::SimSetup sim(settings);
  const auto study = make_refresh();
  const StudyRecords records = records_of(*study, sim.setup);
  const auto summary = study->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->result.at("every 1").at("kl").at("high"), 0.0);
  EXPECT_EQ(summary->result.at("every 1").at("cost_percent"), 100.0);
  EXPECT_EQ(summary->result.at("every 1").at("parted"), 0);
  // A prompt of 40 tokens, 16 new ones: 40 + 15 rows without a refresh, 40 + 41 + … + 55 with all.
  EXPECT_EQ(summary->result.at("never").at("rows_a_token"), 55.0 / 16);
  EXPECT_EQ(summary->result.at("every 1").at("rows_a_token"), 760.0 / 16);
  // At 0, 4, 8 and 12 all rows, one at each other step.
  EXPECT_EQ(summary->result.at("every 4").at("rows_a_token"), (40 + 44 + 48 + 52 + 12) / 16.0);
  EXPECT_EQ(summary->result.at("every 64").at("kl"), summary->result.at("never").at("kl"));
}

TEST(HighPrecisionCache, ComparesBothPairs) {
  const test::SimSetup sim(settings);
  const auto study = make_high_precision_cache();
  const StudyRecords records = records_of(*study, sim.setup);
  const auto summary = study->summarize(records);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->result.at("own format").at("texts"), 4);
  EXPECT_GT(summary->result.at("own format and float32").at("kl").at("value"), 0.0);

  test::FakeSetup fake(2);
  const auto none = study->summarize(records_of(*study, fake.setup));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_THAT(none->headline, testing::HasSubstr("Left out: key \"kv\""));
}

}  // namespace
}  // namespace kvsim::experiments
