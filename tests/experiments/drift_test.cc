// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "experiments/protocol/attention_scores.h"
#include "experiments/protocol/forced_drift.h"
#include "experiments/studies/drift_figures.h"
#include "experiments/study.h"
#include "softfloat/formats.h"
#include "tests/run/engine_runs.h"

namespace kvsim::experiments {
namespace {

constexpr StateShape two_heads{
    .layers = 1, .kv_heads = 1, .head_dim = 2, .format = softfloat::bfloat16};

// Query heads (2, 0) and (0, 4) over keys (1, 1), (2, 0), (0, 3), scale ½.
TEST(AttentionScores, FollowTheRule) {
  const std::vector<double> query{2, 0, 0, 4};
  const std::vector<double> keys{1, 1, 2, 0, 0, 3};
  const AttentionScores all =
      attention_scores({.scale = 0.5, .soft_cap = 0, .window = 0}, two_heads, query, keys).value();
  EXPECT_EQ(all.heads, 2);
  EXPECT_EQ(all.scores, (std::vector<double>{1, 2, 0, 2, 0, 6}));
  const double sum = std::exp(-1.0) + 1 + std::exp(-2.0);
  EXPECT_NEAR(all.weights[1], 1 / sum, 1e-15);
  EXPECT_NEAR(all.weights[2], std::exp(-2.0) / sum, 1e-15);

  const AttentionScores last =
      attention_scores({.scale = 0.5, .soft_cap = 0, .window = 2}, two_heads, query, keys).value();
  EXPECT_EQ(last.scores, (std::vector<double>{2, 0, 0, 6}));

  const AttentionScores capped =
      attention_scores({.scale = 0.5, .soft_cap = 4, .window = 0}, two_heads, query, keys).value();
  EXPECT_NEAR(capped.scores[5], 4 * std::tanh(1.5), 1e-14);
}

// Query heads 0 and 1 share the first K/V head, 2 and 3 the second.
TEST(AttentionScores, ShareKeysInGroups) {
  const StateShape shape{.layers = 1, .kv_heads = 2, .head_dim = 1, .format = softfloat::bfloat16};
  const std::vector<double> query{1, 1, 1, 2};
  const std::vector<double> keys{1, 2, 3, 4};
  EXPECT_EQ(attention_scores({}, shape, query, keys).value().scores,
            (std::vector<double>{1, 2, 1, 2, 3, 4, 6, 8}));
}

TEST(AttentionScores, RefuseSizesThatDoNotFit) {
  EXPECT_FALSE(
      attention_scores({}, two_heads, std::vector<double>{1, 2, 3}, std::vector<double>{1, 2}));
  EXPECT_FALSE(attention_scores({}, two_heads, std::vector<double>{1, 2}, std::vector<double>{}));
}

TEST(ForcedDrift, LooksAtFewSteps) {
  EXPECT_EQ(usual_checkpoints(1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(usual_checkpoints(2), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(usual_checkpoints(12), (std::vector<std::int64_t>{0, 1, 2, 4, 8, 11}));
}

ForcedDrift drift_between(const Engine& engine, std::string_view first, std::string_view second) {
  const StudyArm one = prepare(engine, test::arm_of(first)).value();
  const StudyArm two = prepare(engine, test::arm_of(second)).value();
  const Result<ForcedDrift> found =
      forced_drift(engine, one, two, test::prompt,
                   {.new_tokens = 3, .checkpoints = usual_checkpoints(3), .operators = true});
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : ForcedDrift{};
}

// The same kernels over the same rows: nothing differs anywhere.
TEST(ForcedDrift, OfAnArmFromItselfIsExactlyZero) {
  const auto engine = test::engine_of("gemma2");
  const ForcedDrift same = drift_between(*engine, "live", "live@again");
  ASSERT_EQ(same.steps.size(), 3U);
  EXPECT_FALSE(same.left_out);
  for (const DriftStep& step : same.steps) {
    EXPECT_EQ(step.logits.kl, 0);
    ASSERT_GT(step.layers.size(), 1U);
    for (const LayerDrift& layer : step.layers) {
      EXPECT_GT(layer.all.norm, 0);
      EXPECT_EQ(layer.all.l2, 0);
      EXPECT_EQ(layer.all.differing, 0);
    }
    ASSERT_EQ(step.operators.size(), step.layers.size());
    for (const OperatorDrifts& layer : step.operators) {
      EXPECT_EQ(layer.operators.size(), drift_operators().size());
      for (const auto& [name, drift] : layer.operators) EXPECT_EQ(drift.l2, 0) << name;
      for (const double kl : layer.weights_kl) EXPECT_EQ(kl, 0);
    }
  }
}

// A mistake in RoPE behind the prompt reaches queries and keys of the first layer, not its values.
TEST(ForcedDrift, TellsWhichOperatorDiffers) {
  const auto engine = test::engine_of("llama-llama3");
  const ForcedDrift found = drift_between(*engine, "live", "live:plant=position+1");
  ASSERT_EQ(found.steps.size(), 3U);
  EXPECT_EQ(found.steps[0].layers.front().all.l2, 0);
  const OperatorDrifts& first = found.steps[1].operators.front();
  EXPECT_GT(first.operators.find("query")->second.l2, 0);
  EXPECT_GT(first.operators.find("key")->second.l2, 0);
  EXPECT_EQ(first.operators.find("value")->second.l2, 0);
  EXPECT_GT(first.operators.find("PV")->second.l2, 0);
  EXPECT_GT(found.steps[1].operators.back().operators.find("value")->second.l2, 0);
  EXPECT_GT(found.steps[1].layers.back().all.l2, 0);
  EXPECT_GT(first.weights_kl.front(), 0);
}

/// A prompt whose L2 behind three layers is that.
StudyRecords::Unit unit_of(std::vector<double> l2) {
  Json layers = {{"norm", {10, 10, 10}}, {"l2", l2}, {"relative", {0.1, 0.1, 0.1}}};
  Json step = {{"step", 1},
               {"kl", 0.5},
               {"layers", layers},
               {"operators", Json::object()},
               {"weights_kl", Json::array()}};
  return {{}, {{"steps", Json::array({step})}, {"head_dim", 64}, {"left_out", nullptr}}};
}

// Means (1.5, 3, 6) double from layer to layer.
TEST(DriftFigures, DescribeTheGrowthWithDepth) {
  const StudyRecords records{{}, {unit_of({1, 2, 4}), unit_of({2, 4, 8}), unit_of({1.5, 3, 6})}};
  const DriftFigures figures = drift_figures(records);
  EXPECT_EQ(figures.prompts, 3);
  EXPECT_EQ(figures.generated.differing, 3);
  EXPECT_EQ(figures.checkpoints.find(1)->second.kl, 0.5);
  const DepthTrend trend = depth_trend(figures.generated, "l2", 0).value();
  EXPECT_EQ(trend.first, 1.5);
  EXPECT_EQ(trend.last, 6);
  EXPECT_EQ(*trend.ratio, 4);
  EXPECT_EQ(trend.interval->low, 4);  // each prompt alone grows by as much
  EXPECT_EQ(trend.interval->high, 4);
  EXPECT_EQ(*trend.spearman, 1);
  EXPECT_FALSE(trend.p);  // of three layers
  EXPECT_NEAR(*trend.slope, 1, 1e-14);
  const DepthTrend flat = depth_trend(figures.generated, "relative", 0).value();
  EXPECT_NEAR(*flat.ratio, 1, 1e-15);
  EXPECT_FALSE(flat.spearman);
}

// The first layer is the first behind which anything differs.
TEST(DriftFigures, GrowFromTheLayerWhereTheyBegin) {
  const StudyRecords records{{}, {unit_of({0, 2, 8}), unit_of({0, 1, 4})}};
  const DepthTrend trend = depth_trend(drift_figures(records).generated, "l2", 0).value();
  EXPECT_EQ(trend.layer, 1);
  EXPECT_EQ(trend.first, 1.5);
  EXPECT_EQ(*trend.ratio, 4);
  EXPECT_EQ(trend.interval->high, 4);
  EXPECT_NEAR(*trend.slope, 2, 1e-14);
}

TEST(DriftFigures, OfNothingCannotTell) {
  const StudyRow* const row = study_named("drift").value();
  const Result<StudySummary> none = summarize(*row, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::cannot_tell);
}

}  // namespace
}  // namespace kvsim::experiments
