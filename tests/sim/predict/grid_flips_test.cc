// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/grid_flips.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvsim {
namespace {

/// E[max(0, 1 − |moves − deviation·Z|)] as a sum over narrow slices of Z.
double moves_by_slices(double moves, double deviation) {
  constexpr double width = 1.0 / 4096;
  double sum = 0;
  for (double z = -9 + width / 2; z < 9; z += width) {
    const double inside = 1 - std::fabs(moves - deviation * z);
    sum += std::max(0.0, inside) * std::exp(-z * z / 2);
  }
  return sum * width / std::sqrt(2 * std::numbers::pi);
}

// The sum's error is below width² · 2 ÷ 24 · the largest second derivative, and twice a kink's.
TEST(GridFlips, MovesAgreeWithASumOverErrors) {
  for (const double deviation : {0.05, 0.3, 1.0, 2.5}) {
    for (const std::int64_t moves : {-2, 0, 1, 3}) {
      EXPECT_NEAR(move_probability(moves, deviation),
                  moves_by_slices(static_cast<double>(moves), deviation), 1e-6)
          << moves << " steps, deviation " << deviation;
    }
  }
}

// A small error moves a logit by one step with a chance of E|error| ÷ 2 = deviation ÷ √(2π).
TEST(GridFlips, SmallErrorsMoveRarely) {
  const double once = 0.01 / std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(move_probability(1, 0.01), once, 1e-15);
  EXPECT_NEAR(move_probability(-1, 0.01), once, 1e-15);
  EXPECT_NEAR(move_probability(0, 0.01), 1 - 2 * once, 1e-15);
  EXPECT_EQ(move_probability(0, 0), 1);
  EXPECT_EQ(move_probability(1, 0), 0);
}

// One step up or down with p each; and far apart as rounding twice, by a sixth of a step² more.
TEST(GridFlips, MovesHaveASquare) {
  EXPECT_NEAR(moved_square(0.01), 2 * 0.01 / std::sqrt(2 * std::numbers::pi), 1e-15);
  EXPECT_NEAR(moved_square(5), 25 + 1.0 / 6, 1e-9);
  EXPECT_EQ(moved_square(100), 10000);
  EXPECT_EQ(moved_square(0), 0);
}

// By hand from p = P(one step up) = P(one step down), and none further: the difference falls by
// two steps with p², by one with 2p(1 − 2p).
TEST(GridFlips, TiesAreWonByEither) {
  const double p = 0.01 / std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(flip_probability(0, 0.01), 2 * p * (1 - 2 * p) + p * p, 1e-11);
  EXPECT_NEAR(flip_probability(1, 0.01), p - p * p, 1e-11);
  EXPECT_NEAR(flip_probability(2, 0.01), p * p / 2, 1e-13);
  EXPECT_EQ(flip_probability(3, 0.01), 0);
  EXPECT_EQ(flip_probability(0, 0), 0);
}

// Φ(−1) = 0.158655254 and Φ(−2) = 0.0227501319, of any table.
TEST(GridFlips, FineGridsAreNormal) {
  EXPECT_NEAR(normal_flip_probability(3, 3), 0.158655254, 1e-9);
  EXPECT_NEAR(normal_flip_probability(3, 1.5), 0.0227501319, 1e-9);
  EXPECT_EQ(normal_flip_probability(0, 0), 0);
  EXPECT_NEAR(flip_probability(std::sqrt(2.0) * 100, 100), 0.158655254, 1e-9);
  // On both sides of the border: rounding adds 1 ÷ 6 to a variance of 2 · 64².
  EXPECT_NEAR(flip_probability(64, 63.999), flip_probability(64, 64.001), 2e-5);
}

}  // namespace
}  // namespace kvsim
