// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/flips.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <vector>

#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

// Changes of two independent logits, each of deviation sigma ÷ √2: their difference has sigma.
std::vector<LogitChange> normal_changes(std::int64_t trials, double sigma) {
  std::vector<LogitChange> changes;
  for (std::int64_t i = 0; i < trials; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    changes.push_back({sigma * std::sqrt(0.5) * normal(11, 0, index),
                       sigma * std::sqrt(0.5) * normal(11, 1, index)});
  }
  return changes;
}

double integral(double margin, double sigma) {
  return boost::math::cdf(boost::math::normal_distribution<double>(), -margin / sigma);
}

TEST(Flips, NormalChangesGiveTheNormalIntegral) {
  constexpr double sigma = 0.05;
  const std::vector<LogitChange> changes = normal_changes(4000, sigma);
  for (const double margin : {0.005, 0.02, 0.05, 0.1, 0.15}) {
    const FlipRate rate = flip_rate(changes, margin, {});
    const double expected = integral(margin, sigma);
    EXPECT_LE(rate.probability.low, expected) << margin;
    EXPECT_GE(rate.probability.high, expected) << margin;
    EXPECT_NEAR(rate.probability.value, expected, 0.02) << margin;
    EXPECT_NEAR(rate.normal_model, expected, 0.01) << margin;
  }
}

TEST(Flips, SummaryOfKnownChanges) {
  const std::vector<LogitChange> changes{{0.5, 0.25}, {0, 1}, {-2, 0}, {3, 3}};
  const DifferenceErrors errors = summarize_changes(changes);  // 0.25, -1, -2, 0
  EXPECT_EQ(errors.trials, 4);
  EXPECT_EQ(errors.mean, -2.75 / 4);
  EXPECT_DOUBLE_EQ(errors.deviation, std::sqrt((0.0625 + 1 + 4) / 4));
  EXPECT_EQ(errors.median_absolute, 0.25);
  EXPECT_EQ(errors.absolute_99, 2);
  EXPECT_EQ(errors.largest, 2);
  // 1 - 0.05^(1/4) = 1 - 0.4728708
  EXPECT_NEAR(errors.share_beyond_largest, 0.5271292, 1e-7);
  EXPECT_EQ(summarize_changes({}).trials, 0);
}

// In 10,000 normal changes the largest stays below the 95 % quantile in about 95 % of the cases.
TEST(Flips, TheLargestOfManyStaysBelowItsQuantile) {
  constexpr int repeats = 400;
  constexpr std::int64_t trials = 50;
  const double quantile = largest_normal_quantile(2.0, trials, 0.95);
  int below = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    double largest = 0;
    for (std::int64_t i = 0; i < trials; ++i) {
      largest = std::max(largest, std::abs(2 * normal(5, static_cast<std::uint64_t>(repeat),
                                                      static_cast<std::uint64_t>(i))));
    }
    below += largest < quantile ? 1 : 0;
  }
  EXPECT_NEAR(below / static_cast<double>(repeats), 0.95, 0.04);  // 4 standard errors
}

TEST(Flips, ClopperPearsonByItsClosedForms) {
  // No success: 1 - 0.025^(1/n); all: 0.025^(1/n).
  EXPECT_NEAR(clopper_pearson(0, 10).high, 1 - std::pow(0.025, 0.1), 1e-8);
  EXPECT_EQ(clopper_pearson(0, 10).low, 0);
  EXPECT_NEAR(clopper_pearson(10, 10).low, std::pow(0.025, 0.1), 1e-8);
  EXPECT_EQ(clopper_pearson(10, 10).high, 1);
  // One of ten: 0.0025 to 0.4450, in every table of the band.
  EXPECT_NEAR(clopper_pearson(1, 10).low, 0.0025, 5e-5);
  EXPECT_NEAR(clopper_pearson(1, 10).high, 0.4450, 5e-5);
}

TEST(Flips, WithoutAChangeOnlyNothingFlips) {
  const std::vector<LogitChange> none(100);
  const LogitGrid grid{true, softfloat::bfloat16, 20, 1};
  for (const double margin : {0.0, 0.01, 1.0}) {
    EXPECT_EQ(flip_rate(none, margin, {}).probability.value, 0) << margin;
    EXPECT_EQ(flip_rate(none, margin, grid).probability.value, 0) << margin;
  }
}

// bfloat16 logits between 16 and 32 are multiples of 0.125. A change of exactly one step of the
// lower token makes a tie of a margin of one step, and the tie goes to the lower index: of the four
// ways to see the trial, the change may also be the upper token's, and the index may be either.
TEST(Flips, OnAGridByHand) {
  const LogitGrid grid{true, softfloat::bfloat16, 20, 1};
  const std::vector<LogitChange> one_step(1000, LogitChange{0.125, 0});
  // Margin one step: upper token up: 2 steps, no flip. Lower token up: a tie, lost half the time.
  EXPECT_EQ(flip_rate(one_step, 0.125, grid).probability.value, 0.25);
  // Margin two steps: never nearer than one step.
  EXPECT_EQ(flip_rate(one_step, 0.25, grid).probability.value, 0);
  // Margin 0: a tie before; then one of them is a step ahead: the other one loses the tie it had
  // won.
  EXPECT_EQ(flip_rate(one_step, 0, grid).probability.value, 0.5);
  // In float32 a margin of one step is above a change of half a step, and below one of two.
  EXPECT_EQ(flip_rate(std::vector<LogitChange>(10, {0.0625, 0}), 0.125, {}).probability.value, 0);
  EXPECT_EQ(flip_rate(std::vector<LogitChange>(10, {0.25, 0}), 0.125, {}).probability.value, 0.5);
}

TEST(Flips, PerThousandTokensByHand) {
  // Every change is 1: half of the tokens below a margin of 1 flip, none above.
  const std::vector<LogitChange> changes(50, LogitChange{1, 0});
  const std::vector<MarginBin> bins{{0, 0.5, 3}, {0.5, 1.5, 4}, {1.5, 3, 13}};
  // The middle bin is half below 1: (3 · 0.5 + 4 · 0.5 · 0.5) of 20 tokens.
  EXPECT_DOUBLE_EQ(flips_per_thousand(changes, bins, {}).value, 1000 * 2.5 / 20);
  EXPECT_EQ(flips_per_thousand(changes, {}, {}).value, 0);
}

}  // namespace
}  // namespace kvsim
