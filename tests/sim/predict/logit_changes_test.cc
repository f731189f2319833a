// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/logit_changes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

std::vector<float> state(std::uint64_t stream) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 1024; ++i) {
    values.push_back(static_cast<float>(3 * normal(9, stream, i)));
  }
  return values;
}

LogitOptions options() {
  LogitOptions result;
  result.storage = softfloat::binary32;
  result.logit_deviation = 5;
  result.trials = 2000;
  return result;
}

TEST(LogitChanges, TheLargestOfAVocabularyIsAtItsQuantile) {
  // Φ⁻¹(1 − 1 ÷ 49152) = 4.1030, from a table of the normal distribution.
  EXPECT_NEAR(logit_deviation(41.03, 49152), 10, 0.01);
  EXPECT_EQ(logit_deviation(3, 2), 3);
}

TEST(LogitChanges, EqualStatesChangeNothing) {
  const std::vector<LogitChange> changes = logit_changes(options(), state(0), state(0)).value();
  for (const LogitChange& change : changes) {
    ASSERT_EQ(change.first, 0);
    ASSERT_EQ(change.second, 0);
  }
}

// The norm takes the size of a state away: a multiple of it changes nothing but by epsilon.
TEST(LogitChanges, TheNormTakesTheSizeAway) {
  std::vector<float> twice = state(0);
  for (float& x : twice) x *= 2;
  const auto changes = logit_changes(options(), twice, state(0)).value();
  EXPECT_LT(summarize_changes(changes).deviation, 1e-4);
}

// A drift of relative size r, at right angles to the state: each logit changes by
// r · logit_deviation, the difference of two by √2 of that.
TEST(LogitChanges, ADriftOfKnownSizeGivesItsDeviation) {
  const std::vector<float> off = state(0);
  const std::vector<float> other = state(1);
  constexpr double r = 0.01;
  std::vector<float> on = off;
  for (std::size_t i = 0; i < on.size(); ++i) on[i] += static_cast<float>(r) * other[i];
  const DifferenceErrors errors = summarize_changes(logit_changes(options(), on, off).value());
  EXPECT_EQ(errors.trials, 2000);
  const double expected = r * 5 * std::sqrt(2.0);
  EXPECT_NEAR(errors.deviation, expected, 0.1 * expected);
  EXPECT_NEAR(errors.mean, 0, 4 * expected / std::sqrt(2000.0));
}

TEST(LogitChanges, ThreadsChangeNothing) {
  LogitOptions three = options();
  three.engine.threads = 3;
  const auto one = logit_changes(options(), state(0), state(2)).value();
  const auto other = logit_changes(three, state(0), state(2)).value();
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_EQ(one[i].first, other[i].first);
}

}  // namespace
}  // namespace kvsim
