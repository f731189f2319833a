// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "experiments/protocol/arm_passes.h"
#include "experiments/protocol/layer_gains.h"
#include "experiments/studies/predicted_figures.h"
#include "experiments/studies/predicted_steps.h"
#include "experiments/study.h"
#include "experiments/tables.h"
#include "run/margin.h"
#include "tests/experiments/fake_setup.h"
#include "tests/experiments/sim_setup.h"

namespace kvsim::experiments {
namespace {

using Rows = std::vector<std::int64_t>;

Rows behind(std::string_view arm, std::int64_t prompt, std::int64_t generated) {
  return passes_behind(test::arm_of(arm), prompt, generated).value();
}

TEST(ArmPasses, AreThoseThatMadeTheRows) {
  EXPECT_EQ(behind("live", 3, 2), (Rows{3, 1, 1}));
  EXPECT_EQ(behind("token-wise", 3, 2), (Rows{3, 1, 1}));
  EXPECT_EQ(behind("all-token-wise", 3, 1), (Rows{1, 1, 1, 1}));
  EXPECT_EQ(behind("off", 3, 2), (Rows{5}));
  EXPECT_EQ(behind("chunked(2)", 5, 1), (Rows{2, 2, 1, 1}));
  EXPECT_EQ(behind("prefix-hit(4,2)", 5, 1), (Rows{4, 1, 1}));
  EXPECT_FALSE(passes_behind(test::arm_of("prefix-hit(3,2)"), 5, 1));  // 2 rows of a pass over 3
}

TEST(Predicted, LooksAtFewSteps) {
  EXPECT_EQ(predicted_steps(1), Rows{});
  EXPECT_EQ(predicted_steps(2), Rows{1});
  EXPECT_EQ(predicted_steps(18), (Rows{1, 4, 16, 17}));
}

TEST(Predicted, IsGoodWithinAFactorOfTwo) {
  EXPECT_TRUE(is_within(2, 1));
  EXPECT_TRUE(is_within(1, 2));
  EXPECT_TRUE(is_within(0, 0));
  EXPECT_FALSE(is_within(2.1, 1));
  EXPECT_FALSE(is_within(1, 2.1));
  EXPECT_FALSE(is_within(0, 1));
}

// A layer that adds nothing to its input has no gain; every one of this model does.
TEST(LayerGains, AreThoseOfTheLayersBehindTheFirst) {
  test::SimSetup sim("dispatch=cpu");
  const StudyArm arm = prepare(*sim.setup.engine, sim.setup.on).value();
  ArmSequence text = arm.open(sim.setup.prompts.front().prompt.ids, 2).value();
  const EnginePass pass = text.next({.layer_values = true}).value();
  const auto gains = layer_gains(text, arm.engine->activation_format(), 1).value();
  ASSERT_EQ(gains.size() + 1, pass.values.size());
  for (const double gain : gains) {
    EXPECT_GT(gain, 0);
    EXPECT_LT(gain, 100);
  }
  // The text stays as it is.
  EXPECT_EQ(layer_gains(text, arm.engine->activation_format(), 1).value(), gains);
}

/// The squared gradients of the two largest logits by the hidden state behind the last layer, from
/// differences in each direction, ÷ 2.
double gradient_square(const ArmSequence& text, const std::vector<double>& state,
                       std::int64_t layer) {
  const std::int64_t last = std::ssize(text.tokens()) - 1;
  const auto copy = text.sequence().save().value();
  const PlanStep step{.first_row = last, .rows = 1, .cached_rows = last};
  const EnginePass plain = copy->pass(text.tokens(), step, {}).value();
  const auto top = largest_logits(plain.logits, 2);
  double sum = 0;
  for (std::size_t i = 0; i < state.size(); ++i) {
    std::vector<double> moved = state;
    moved[i] += 0x1p-10;
    for (double& each : moved) each = static_cast<double>(static_cast<float>(each));
    const std::vector<HiddenReplacement> replaced{{.layer = layer, .row = 0, .values = moved}};
    const EnginePass pass = copy->pass(text.tokens(), step, {.replaced = replaced}).value();
    for (const TokenLogit& each : top) {
      const double slope =
          (pass.logits[static_cast<std::size_t>(each.token)] - each.logit) / (moved[i] - state[i]);
      sum += slope * slope / 2;
    }
  }
  return sum;
}

// Noise of relative size r moves a logit by r · ‖state‖ · ‖gradient‖ ÷ √elements, root mean square.
// Eight changes are drawn: their root mean square is within a factor of 2 in all but 1 of 200
// cases.
TEST(LayerGains, OfLogitsIsTheirGradient) {
  test::SimSetup sim("dispatch=fp32,storage=binary32,weights=binary32");
  const StudyArm arm = prepare(*sim.setup.engine, sim.setup.on).value();
  ArmSequence text = arm.open(sim.setup.prompts.front().prompt.ids, 2).value();
  const StateValues hidden = text.next({.layer_values = true}).value().values.back();
  double squares = 0;
  for (const double each : hidden.values) squares += each * each;
  const double expected = std::sqrt(squares * gradient_square(text, hidden.values, hidden.layer) /
                                    static_cast<double>(hidden.values.size()));
  const double gain = top_logits_gain(text, arm.engine->activation_format(), 0, 1).value();
  EXPECT_GT(gain, expected / 2);
  EXPECT_LT(gain, 2 * expected);
}

/// A prompt with a step over the prompt, which does not count, and two behind it: margins of 0 and
/// 1 step of the grid, which is 8 wide; logits of gain 4, whose top two move by 8 once.
StudyRecords::Unit unit_of(std::int64_t prompt, double relative, const Json& predicted) {
  const Json nothing = Json::array({0, 0, 0});
  const Json steps = {{"kl", nothing},
                      {"js", nothing},
                      {"largest_logit_difference", nothing},
                      {"argmax_differs", {false, prompt == 0, false}},
                      {"on_margin", {100, 0, 8}},
                      {"on_margin_ulps", {12.5, 0, 1}},
                      {"off_margin", {100, 0, 8}},
                      {"top_two_error", {0, 8, 0}}};
  const Json far = {1000, 1000};
  return {{"greedy", prompt, 0, 0},
          {{"steps", steps},
           {"logit_gain", {4, 4, 4}},
           {"logit_step", {8, 8, 8}},
           {"relative", {far, {relative, 4 * relative}, {relative, 4 * relative}}},
           {"predicted", predicted}}};
}

// Two prompts with 0.001 and 0.003 behind layer 0 and four times that behind layer 1, where the
// decoder of the first says 0.002 and 0.002.
TEST(Predicted, ComparesLayersAndFlips) {
  const Json decoder = {
      {"steps", {1, 4}}, {"relative", {{0.002, 0.002}, {9, 9}}}, {"logit", {0.02, 9}}};
  const Json predicted = Json::array({decoder, decoder, decoder});
  const StudyRecords records{{}, {unit_of(0, 0.001, predicted), unit_of(1, 0.003, Json::array())}};
  // Step 2 is as far from 1 as from 4: the earlier one counts.
  const PredictedFigures found = predicted_figures(records).value();
  EXPECT_EQ(found.decoders, 3);
  EXPECT_EQ(found.steps, 4);
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_NEAR(found.layers[0].measured.value, 0.002, 1e-15);
  EXPECT_NEAR(*found.layers[0].ratio, 1, 1e-12);
  EXPECT_EQ(found.layers[0].differing, 4);
  EXPECT_EQ(found.layers[0].predicted_differing, 6);
  EXPECT_FALSE(found.layers[0].within);  // four steps that differ, of six expected: too few
  EXPECT_FALSE(found.layers[0].growth);
  EXPECT_NEAR(*found.layers[1].ratio, 4, 1e-12);
  EXPECT_NEAR(*found.layers[1].growth, 4, 1e-12);
  EXPECT_EQ(found.flips.all().successes, 1);
  EXPECT_EQ(found.flips.all().trials, 4);

  // A logit's error is 0.02 · 4 = 0.08, 0.01 steps: one step up or down with p.
  ASSERT_EQ(found.laws.size(), 3U);
  const double p = 0.01 / std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(found.laws[0].expected, 2 * (2 * p * (1 - 2 * p) + p * p) + 2 * (p - p * p), 1e-10);
  EXPECT_NEAR(found.laws[0].deviation, 8 * std::sqrt(2 * 2 * p), 1e-12);  // 2p steps² of each
  EXPECT_NEAR(*found.laws[0].ratio, 1 / found.laws[0].expected, 1e-9);
  EXPECT_FALSE(found.laws[0].within);  // one flip says nothing
  // Normal errors: half of the ties, and none at 70 deviations.
  EXPECT_NEAR(found.laws[1].expected, 1, 1e-9);
  // Measured: 8 at two of four steps, √32; Φ(−8 ÷ √32) = Φ(−√2) = 0.0786496035.
  EXPECT_NEAR(found.laws[2].deviation, std::sqrt(32.0), 1e-12);
  EXPECT_NEAR(found.laws[2].expected, 1 + 2 * 0.0786496035, 1e-8);
}

// The same prompts five times over: enough steps to tell.
TEST(Predicted, TellsFromFiveStepsOn) {
  const Json decoder = {{"steps", {1}}, {"relative", {{0.002, 0.002}}}, {"logit", {0.02}}};
  const Json predicted = Json::array({decoder, decoder, decoder});
  StudyRecords records;
  for (std::int64_t i = 0; i < 5; ++i) records.units.push_back(unit_of(i, 0.002, predicted));
  const PredictedFigures found = predicted_figures(records).value();
  EXPECT_EQ(found.layers[0].differing, 10);
  EXPECT_EQ(found.layers[0].predicted_differing, 15);
  ASSERT_TRUE(found.layers[0].within.has_value());
  EXPECT_TRUE(*found.layers[0].within);
  ASSERT_TRUE(found.layers[1].within.has_value());
  EXPECT_FALSE(*found.layers[1].within);  // 0.008 against 0.002
}

TEST(Predicted, SaysNothingWithoutADecoderOrASecondToken) {
  const StudyRecords records{{}, {unit_of(0, 0.001, Json::array())}};
  EXPECT_EQ(predicted_figures(records).error().kind, ErrorKind::cannot_tell);
  EXPECT_EQ(predicted_figures({}).error().kind, ErrorKind::cannot_tell);
}

// Every kernel adds in one order, whatever the rows: nothing drifts, and that is predicted.
TEST(Predicted, OfOneReductionIsExactlyZero) {
  test::SimSetup sim("dispatch=batch-invariant");
  sim.setup.new_tokens = 3;
  sim.setup.prompts.resize(1);
  const StudyRow* row = study_named("predicted").value();
  const auto units = row->make()->units(sim.setup).value();
  ASSERT_EQ(units.size(), 1U);
  const Json values = row->make()->compute(sim.setup, units.front()).value();
  ASSERT_FALSE(values.at("predicted").empty());
  for (const Json& decoder : values.at("predicted")) {
    for (const Json& layers : decoder.at("relative")) {
      for (const Json& each : layers) EXPECT_EQ(each, 0);
    }
  }
  for (const Json& layers : values.at("relative")) {
    for (const Json& each : layers) EXPECT_EQ(each, 0);
  }
  const StudyRecords records{{}, {{units.front(), values}}};
  const StudySummary summary = summarize(*row, records).value();
  EXPECT_EQ(summary.result.at("layers_within"), summary.result.at("layers_all"));
  EXPECT_EQ(summary.result.at("flips"), 0);
}

TEST(Predicted, RefusesArmsOfWhichNothingIsPredicted) {
  const StudyRow* row = study_named("predicted").value();
  test::SimSetup plant("dispatch=cpu", ",plant=position+1");
  EXPECT_EQ(row->make()->units(plant.setup).error().kind, ErrorKind::usage);
  test::SimSetup cache("dispatch=cpu", ",kv=float8_e4m3fn");
  EXPECT_EQ(row->make()->units(cache.setup).error().kind, ErrorKind::usage);
  test::SimSetup formats("dispatch=cpu", ",storage=binary16");
  EXPECT_EQ(row->make()->units(formats.setup).error().kind, ErrorKind::usage);
  test::FakeSetup fake(1);
  EXPECT_EQ(row->make()->units(fake.setup).error().kind, ErrorKind::unavailable);
}

TEST(Cells, LeaveOutAnIntervalThatIsNone) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(percent_cell(statistics::Estimate{0.125, none, none}).text, "12.5 %");
  EXPECT_EQ(percent_cell(statistics::Estimate{0.125, 0.05, 0.25}).text, "12.5 % (5.0 to 25.0)");
}

}  // namespace
}  // namespace kvsim::experiments
