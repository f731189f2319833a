// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/controls/control.h"
#include "experiments/controls/measures.h"

/// How figures are judged: records made by hand, thresholds worked out by hand.
namespace kvsim::experiments {
namespace {

using testing::DoubleEq;

ControlOutcome outcome(ControlVerdict (*judge)(const ControlRecords&),
                       const ControlRecords& records) {
  return judge(records).outcome();
}

/// Values of control 3 with one step.
Json forced(double kl, double floor_on, double floor_off, double off_roundoff = 0x1p-8) {
  return {{"on_roundoff", 0x1p-8},
          {"off_roundoff", off_roundoff},
          {"kl", {kl}},
          {"largest_logit_difference", {0.5}},
          {"floor_on", {floor_on}},
          {"floor_off", {floor_off}}};
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

TEST(RoundingSquare, TakesEachArmToBeNoWorseThanTheOtherSays) {
  EXPECT_THAT(rounding_square(1, 1, 1), DoubleEq(4));      // 2 (1 + 1)
  EXPECT_THAT(rounding_square(1, 1000, 1), DoubleEq(4));   // a defect of off does not count
  EXPECT_THAT(rounding_square(64, 1, 8), DoubleEq(130));   // 2 (64 + 1): bfloat16 and binary16
  EXPECT_THAT(rounding_square(64, 64, 8), DoubleEq(130));  // off: 64 ÷ 8²
}

TEST(JudgeForced, ComparesTheMeanWithTheFloors) {
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(4, 1, 1)}}}), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(4.1, 1, 1)}}}), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(6, 1, 1), forced(2, 1, 1)}}}),
            ControlOutcome::green);
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(5, 1, 99)}}}), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_forced, {{3, {forced(129, 64, 1, 0x1p-11)}}}), ControlOutcome::green);
  Json without = forced(1, 1, 1);
  without.erase("floor_on");
  without["floor_reason"] = "nothing wider";
  const ControlVerdict verdict = judge_forced({{3, {without}}});
  EXPECT_EQ(verdict.outcome(), ControlOutcome::not_applicable);
  EXPECT_EQ(verdict.reasons.at(0).text, "nothing wider");
}

TEST(JudgePlateau, IsAboveEveryStepAfterTheSameTokens) {
  const auto of = [](double plateau) {
    return ControlRecords{{3, {forced(2, 1, 1), forced(5, 1, 1)}}, {4, {{{"kl", {plateau}}}}}};
  };
  EXPECT_EQ(outcome(judge_plateau, of(5)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_plateau, of(4.9)), ControlOutcome::failed);
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

Json cell(const char* family, int precision, double square, double kl) {
  return {{"name", std::string(family) + std::to_string(precision)},
          {"family", family},
          {"precision", precision},
          {"square", square},
          {"kl", kl}};
}

TEST(JudgeStorage, MeasuresThePowerOfU) {
  const auto of = [](double square, double kl) {
    return ControlRecords{
        {5,
         {{{"cells", {cell("own sums", 8, 0x1p-10, 0x1p-20), cell("own sums", 24, square, kl)}}}}}};
  };
  // 16 bits: the squared error by 2^-32 and KL by 2^-32 are the first and the second power.
  const ControlVerdict verdict = judge_storage(of(0x1p-42, 0x1p-52));
  EXPECT_THAT(verdict.checks.at(0).measured, DoubleEq(1));
  EXPECT_THAT(verdict.checks.at(1).measured, DoubleEq(2));
  EXPECT_EQ(verdict.outcome(), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_storage, of(0x1p-10, 0x1p-52)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_storage, of(0x1p-42, 0x1p-36)), ControlOutcome::failed);
  EXPECT_EQ(outcome(judge_storage, of(0x1p-54, 0x1p-52)), ControlOutcome::failed);
}

TEST(JudgeOrderAndCells, WeighTheirOwnFamilies) {
  const ControlRecords order{{6,
                              {{{"cells",
                                 {cell("order of sums", 11, 0x1p-10, 0x1p-20),
                                  cell("order of sums", 24, 0x1p-36, 0x1p-46)}}}}}};
  EXPECT_EQ(outcome(judge_order, order), ControlOutcome::green);
  const auto kinds = [](double eager) {
    Json as_it_is = cell("attention", 0, 1, 1);
    as_it_is["name"] = "as it is";
    return ControlRecords{{16, {{{"cells", {as_it_is, cell("attention", 0, eager, 1)}}}}}};
  };
  EXPECT_EQ(outcome(judge_cells, kinds(64)), ControlOutcome::green);  // 8 times as large
  EXPECT_EQ(outcome(judge_cells, kinds(65)), ControlOutcome::failed);
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
  const auto flips = [](double margin) {
    return ControlRecords{{11, {{{"steps", 9}, {"flips", 1}, {"largest_margin", margin}}}}};
  };
  EXPECT_EQ(outcome(judge_flips, flips(1)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_flips, flips(1.01)), ControlOutcome::failed);
  const auto draws = [](int unexplained) {
    return ControlRecords{{13, {{{"draws", 9}, {"differing", 3}, {"unexplained", unexplained}}}}};
  };
  EXPECT_EQ(outcome(judge_sampling, draws(0)), ControlOutcome::green);
  EXPECT_EQ(outcome(judge_sampling, draws(1)), ControlOutcome::failed);
}

TEST(JudgeDefects, EachIsFartherThanRounding) {
  const auto of = [](double least) {
    return ControlRecords{
        {3, {forced(1, 1, 1)}},
        {12, {{{"cells", {{{"name", "a"}, {"kl", {9.0}}}, {{"name", "b"}, {"kl", {least}}}}}}}}};
  };
  EXPECT_EQ(outcome(judge_defects, of(4)), ControlOutcome::green);
  const ControlVerdict verdict = judge_defects(of(3.9));
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
                             {"apart", Json::array({Json::array({apart, 99.0})})},
                             {"floor_on", Json::array({Json::array({1.0, 5.0})})},
                             {"floor_off", Json::array({Json::array({3.0, 5.0})})}}}}};
  };
  EXPECT_EQ(outcome(judge_drift, drift(2)), ControlOutcome::green);  // √(2 (1 + 1))
  EXPECT_EQ(outcome(judge_drift, drift(2.1)), ControlOutcome::failed);
  EXPECT_THAT(judge_drift(drift(2)).checks.at(0).measured, DoubleEq(512));  // in units of 2^-8
}

}  // namespace
}  // namespace kvsim::experiments
