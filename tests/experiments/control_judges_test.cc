// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/controls/control.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"

/// How figures are judged: records made by hand, thresholds worked out by hand.
namespace kvsim::experiments {
namespace {

using testing::DoubleEq;

ControlOutcome outcome(ControlVerdict (*judge)(const ControlRecords&),
                       const ControlRecords& records) {
  return judge(records).outcome();
}

/// By how much errors may miss their prediction, and KL.
const double factor = weights_allowance().factor;
const double square = factor * factor;

/// Values of control 3 with one step.
Json forced(double kl, double predicted_on, double predicted_off) {
  return {{"on_roundoff", 0x1p-8},
          {"off_roundoff", 0x1p-11},
          {"kl", {kl}},
          {"largest_logit_difference", {0.5}},
          {"predicted_on", {predicted_on}},
          {"predicted_off", {predicted_off}}};
}

TEST(ControlVerdict, FailsWithOneCheckAndSaysWhich) {
  ControlVerdict verdict;
  EXPECT_EQ(verdict.outcome(), ControlOutcome::not_applicable);
  EXPECT_EQ(verdict.decisive(), nullptr);
  verdict.checks = {{"one", 1, 0, 2}, {"two", 3, 3, 3}};
  EXPECT_EQ(verdict.outcome(), ControlOutcome::green);
  EXPECT_EQ(verdict.decisive()->what, "one");
  verdict.checks.push_back({"three", 2.5, 3, 4});
  EXPECT_EQ(verdict.outcome(), ControlOutcome::failed);
  EXPECT_EQ(verdict.decisive()->what, "three");
}

TEST(ApartSquare, TakesEachMeasuredArmToBeNoWorseThanTheOtherSays) {
  EXPECT_THAT(apart_square(3, 4), DoubleEq(14));  // 2 (3 + 4)
  EXPECT_THAT(measured_apart_square(1, 1, 1), DoubleEq(4));
  EXPECT_THAT(measured_apart_square(1, 1000, 1), DoubleEq(4));   // a defect of off does not count
  EXPECT_THAT(measured_apart_square(64, 1, 8), DoubleEq(130));   // bfloat16 and binary16
  EXPECT_THAT(measured_apart_square(64, 64, 8), DoubleEq(130));  // off: 64 ÷ 8²
}

TEST(JudgeForced, ComparesTheMeanWithThePredictionAndShowsTheFloor) {
  const double allowed = square * 2 * (1 + 2);
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(allowed, 1, 2)}}}), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(allowed * 1.01, 1, 2)}}}), ControlOutcome::failed);
  // Means over the prompts: of what is measured, and of what is predicted.
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(2 * allowed, 2, 4), forced(0, 0, 0)}}}),
            ControlOutcome::green);
  Json with = forced(1, 1, 2);
  with["floor_on"] = {64};
  with["floor_off"] = {99};
  const ControlVerdict verdict = judge_forced({{3, {with}}});
  EXPECT_THAT(verdict.checks.at(0).high, DoubleEq(allowed));  // whatever was measured
  EXPECT_THAT(verdict.checks.at(0).predicted.value_or(0), DoubleEq(3));
  EXPECT_THAT(verdict.checks.at(0).floor.value_or(0), DoubleEq(130));  // 2 (64 + 64 ÷ 8²)
  Json without = forced(1, 1, 1);
  without.erase("predicted_on");
  without["prediction_reason"] = "nothing known";
  const ControlVerdict none = judge_forced({{3, {without}}});
  EXPECT_EQ(none.outcome(), ControlOutcome::not_applicable);
  EXPECT_EQ(none.reasons.at(0).text, "nothing known");
}

TEST(JudgePlateau, IsAboveEveryStepAfterTheSameTokensAndAboveRounding) {
  const auto of = [](double plateau, double predicted) {
    return ControlRecords{{3, {forced(2, predicted, predicted), forced(5, predicted, predicted)}},
                          {4, {{{"kl", {plateau}}}}}};
  };
  EXPECT_EQ(outcome(judge_plateau, of(5, 0)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_plateau, of(4.9, 0)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_plateau, of(square * 12, 3)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_plateau, of(square * 11.9, 3)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_plateau, {{3, {forced(2, 1, 1)}}, {4, {not_applicable("one prompt")}}}),
            ControlOutcome::not_applicable);
}

TEST(JudgeBits, FailsWithOneOtherBit) {
  const Json same{{"steps", 8}, {"other_logits", 0}, {"other_caches", 0}};
  const Json other{{"steps", 8}, {"other_logits", 0}, {"other_caches", 1}};
  EXPECT_EQ(outcome(judge_replica, {{1, {{{"on", same}, {"off", same}}}}}), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_replica, {{1, {{{"on", same}, {"off", other}}}}}),
            ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_identity, {{2, {{{"invariant", same}}}}}), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_identity, {{2, {{{"invariant", other}}}}}), ControlOutcome::failed);
  const Json shapes{{"invariant", not_applicable("no such kernels")}, {"same_shapes", other}};
  EXPECT_EQ(outcome(judge_identity, {{2, {shapes}}}), ControlOutcome::failed);
  // Exact sums: a difference of the orders, and no error of storage left, are both wrong.
  EXPECT_EQ(outcome(judge_exact_sums, {{7, {{{"bits", same}, {"storage_kl", {1e-9}}}}}}),
            ControlOutcome::green);
  EXPECT_EQ(outcome(judge_exact_sums, {{7, {{{"bits", same}, {"storage_kl", {0.0}}}}}}),
            ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_exact_sums, {{7, {{{"bits", other}, {"storage_kl", {1e-9}}}}}}),
            ControlOutcome::failed);
  const Json cells{{"cells", {{{"name", "a"}, {"bits", same}}, {{"name", "b"}, {"bits", other}}}}};
  EXPECT_EQ(outcome(judge_constructors, {{8, {cells}}}), ControlOutcome::failed);
}

/// A cell whose error is `square`, and that predict expects to be `predicted`; KL is as the error.
Json cell(const char* family, int precision, double squared, double predicted) {
  return {{"name", std::string(family) + std::to_string(precision)},
          {"family", family},
          {"precision", precision},
          {"square", squared},
          {"kl", squared},
          {"predicted_square", predicted},
          {"predicted_kl", predicted}};
}

TEST(JudgeStorage, MeasuresThePowerOfUAndAllowsWhatPredictSays) {
  // 16 bits apart: squares by 2^-32 are the first power of u in errors, the second one in KL.
  const auto of = [](double squared, double predicted) {
    return ControlRecords{
        {5,
         {{{"cells",
            {cell("own sums", 8, 0x1p-10, 0x1p-10), cell("own sums", 24, squared, predicted)}}}}}};
  };
  const ControlVerdict verdict = judge_storage(of(0x1p-42, 0x1p-42));
  EXPECT_THAT(verdict.checks.at(0).measured, DoubleEq(1));
  EXPECT_THAT(verdict.checks.at(0).predicted.value_or(0), DoubleEq(1));
  EXPECT_THAT(verdict.checks.at(1).measured, DoubleEq(2));
  EXPECT_EQ(verdict.outcome(), ControlOutcome::green);
  // Both cells may miss by the factor: squares by its fourth power.
  const double most = std::pow(step_allowance().factor, 4) * 0.99;
  EXPECT_EQ(outcome(judge_storage, of(0x1p-42 * most, 0x1p-42)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_storage, of(0x1p-42 / most, 0x1p-42)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_storage, of(0x1p-42 * most * 1.1, 0x1p-42)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_storage, of(0x1p-42 / most / 1.1, 0x1p-42)), ControlOutcome::failed);
  // What is predicted is what counts, not the first power.
  EXPECT_EQ(outcome(judge_storage, of(0x1p-26, 0x1p-26)), ControlOutcome::green);
  // Errors that do not follow u.
  EXPECT_EQ(outcome(judge_storage, of(0x1p-10, 0x1p-42)), ControlOutcome::failed);
}

TEST(JudgeStorage, SaysWhereNothingIsPredicted) {
  Json coarse = cell("own sums", 8, 1, 1);
  coarse.erase("predicted_kl");
  coarse["prediction_reason"] = "no such engine";
  const ControlVerdict verdict =
      judge_storage({{5, {{{"cells", {coarse, cell("own sums", 24, 1, 1)}}}}}});
  EXPECT_EQ(verdict.outcome(), ControlOutcome::not_applicable);
  EXPECT_EQ(verdict.reasons.at(0).text, "no such engine");
}

TEST(JudgeOrderAndCells, WeighTheirOwnFamilies) {
  const ControlRecords order{{6,
                              {{{"cells",
                                 {cell("order of sums", 11, 0x1p-10, 0x1p-10),
                                  cell("order of sums", 24, 0x1p-36, 0x1p-36)}}}}}};
  EXPECT_EQ(outcome(judge_order, order), ControlOutcome::green);
  const auto kinds = [](double eager) {
    Json as_it_is = cell("attention", 0, 1, 1);
    as_it_is["name"] = "as it is";
    return ControlRecords{{16, {{{"cells", {as_it_is, cell("attention", 0, eager, 4)}}}}}};
  };
  const double of_one = arm_allowance().factor * arm_allowance().factor;
  EXPECT_EQ(outcome(judge_cells, kinds(4 * of_one)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_cells, kinds(4.1 * of_one)), ControlOutcome::failed);
}

TEST(JudgeState, TheDonorIsFollowedAndNoiseIsOfOneSize) {
  const auto moved = [](int follows, int identity) {
    return ControlRecords{
        {9, {{{"directions", 2}, {"follows", follows}, {"identity_differs", identity}}}}};
  };
  EXPECT_EQ(outcome(judge_transplant, moved(2, 0)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_transplant, moved(1, 0)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_transplant, moved(2, 1)), ControlOutcome::failed);
  const auto noise = [](double real, double random) {
    return ControlRecords{{10, {{{"real", real}, {"noise", random}}}}};
  };
  EXPECT_EQ(outcome(judge_noise, noise(64, 1)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_noise, noise(65, 1)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_noise, noise(1, 65)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_noise, noise(0, 0)), ControlOutcome::not_applicable);
}

TEST(JudgeTokens, NothingHappensWithoutACause) {
  const auto flips = [](double over_change, double over_predicted, int swaps) {
    return ControlRecords{{11,
                           {{{"steps", 9},
                             {"flips", 0},
                             {"pairs", 1000},
                             {"swaps", swaps},
                             {"over_change", over_change},
                             {"over_predicted", over_predicted}}}}};
  };
  // The largest of 1000 normal changes stays below 4.05 deviations with 95 %: 2 (1 - Phi(4.05)) is
  // 5.1e-5.
  const double most = 4.05 * step_allowance().factor;
  EXPECT_EQ(outcome(judge_flips, flips(1, most * 0.99, 3)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_flips, flips(1, most * 1.01, 3)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_flips, flips(1.01, 1, 3)), ControlOutcome::failed);
  const ControlVerdict none = judge_flips(flips(0, 0, 0));
  EXPECT_EQ(none.outcome(), ControlOutcome::not_applicable);
  EXPECT_EQ(none.reasons.at(0).text,
            "cannot tell: no two of the 16 largest logits change places in 9 steps");
  const auto draws = [](int unexplained) {
    return ControlRecords{{13, {{{"draws", 9}, {"differing", 3}, {"unexplained", unexplained}}}}};
  };
  EXPECT_EQ(outcome(judge_sampling, draws(0)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_sampling, draws(1)), ControlOutcome::failed);
}

TEST(JudgeDefects, EachIsFartherThanRounding) {
  const auto of = [](double least) {
    return ControlRecords{
        {3, {forced(1, 0.5, 0.5)}},
        {12,
         {{{"cells",
            {{{"name", "a"}, {"kl", {9 * square}}}, {{"name", "b"}, {"kl", {least * square}}}}}}}}};
  };
  EXPECT_EQ(outcome(judge_defects, of(2)), ControlOutcome::green);  // 2 (½ + ½)
  const ControlVerdict verdict = judge_defects(of(1.99));
  EXPECT_EQ(verdict.outcome(), ControlOutcome::failed);
  EXPECT_EQ(verdict.decisive()->what, "b: mean KL (nats)");
}

TEST(JudgeHeadsAndDrift, FollowTheirFigures) {
  EXPECT_EQ(outcome(judge_heads, {{14, {{{"differing", 0}}}}}), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_heads, {{14, {{{"differing", 1}}}}}), ControlOutcome::failed);
  const auto drift = [](double apart) {
    // One step with two layers; the first one counts.
    return ControlRecords{{15,
                           {{{"on_roundoff", 0x1p-8},
                             {"off_roundoff", 0x1p-8},
                             {"predicted_on", 1.0},
                             {"predicted_off", 7.0},
                             {"apart", Json::array({Json::array({apart, 99.0})})},
                             {"floor_on", Json::array({Json::array({1.0, 5.0})})},
                             {"floor_off", Json::array({Json::array({3.0, 5.0})})}}}}};
  };
  EXPECT_EQ(outcome(judge_drift, drift(10 * factor)), ControlOutcome::green);  // √(2 (1 + 49))
  EXPECT_EQ(outcome(judge_drift, drift(10.1 * factor)), ControlOutcome::failed);
  const ControlVerdict verdict = judge_drift(drift(2));
  EXPECT_THAT(verdict.checks.at(0).measured, DoubleEq(512));           // in units of 2^-8
  EXPECT_THAT(verdict.checks.at(0).floor.value_or(0), DoubleEq(512));  // √(2 (1 + 1))
}

}  // namespace
}  // namespace kvsim::experiments
