// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// KL between the softmaxes of two lists, by its definition.
double plain_kl(const std::vector<double>& p, const std::vector<double>& q) {
  long double p_sum = 0;
  long double q_sum = 0;
  for (const double x : p) p_sum += std::exp(static_cast<long double>(x));
  for (const double x : q) q_sum += std::exp(static_cast<long double>(x));
  long double kl = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const long double log_p = static_cast<long double>(p[i]) - std::log(p_sum);
    const long double log_q = static_cast<long double>(q[i]) - std::log(q_sum);
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return static_cast<double>(kl);
}

TEST(PredictedKl, IsHalfTheVarianceOfWhatRoundingALogitDoes) {
  // Two tokens of one half each: Σ p (1 − p) = 1/2. A unit of bfloat16 at 1 is 2^-7.
  const std::vector<double> equal{1, 1};
  EXPECT_DOUBLE_EQ(predicted_kl(equal, {0.5, softfloat::bfloat16}).value(), 0x1p-14 / 12 / 4);
  // Four of a quarter each: 3/4. At 16 the unit of binary16 is 2^-6.
  const std::vector<double> four{16, 16, 16, 16, -infinity};
  EXPECT_DOUBLE_EQ(predicted_kl(four, {0, softfloat::binary16}).value(), 0x1p-12 / 12 * 3 / 8);
  // A sure token has nothing to lose.
  EXPECT_EQ(predicted_kl(std::vector<double>{900, 0}, {0.1, softfloat::bfloat16}).value(), 0);
}

TEST(PredictedKl, SpreadsTheStatesErrorAsTheLogits) {
  // Deviation 3 of a logit by hand: p is that of e^3 to e^-3.
  const double p = 1 / (1 + std::exp(-6.0));
  const double v = 0.01 * 0.01 * 9;
  const double kl = predicted_kl(std::vector<double>{3, -3}, {0.01, softfloat::binary64}).value();
  EXPECT_NEAR(kl, 2 * p * (1 - p) * v / 2, 1e-12 * kl);
}

TEST(PredictedKl, IsTheMeanKlOfRandomErrors) {
  constexpr std::size_t tokens = 40;
  constexpr int draws = 4000;
  std::vector<double> logits;
  for (std::uint64_t i = 0; i < tokens; ++i) logits.push_back(2 * normal(3, 0, i));
  double mean = 0;
  double squares = 0;
  for (const double x : logits) mean += x / tokens;
  for (const double x : logits) squares += (x - mean) * (x - mean) / tokens;
  constexpr double relative = 0.005;
  const double deviation = relative * std::sqrt(squares);
  double sum = 0;
  std::uint64_t index = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> moved = logits;
    for (double& x : moved) x += deviation * normal(3, 1, index++);
    sum += plain_kl(logits, moved) / draws;
  }
  // Of 4000 draws of a sum with more than one token, the mean is known to some per cent.
  const double kl = predicted_kl(logits, {relative, softfloat::binary64}).value();
  EXPECT_NEAR(kl, sum, 0.08 * sum);
}

TEST(PredictedKl, RefusesWhatIsNoDistribution) {
  const LogitErrors errors{0.1, softfloat::binary32};
  EXPECT_FALSE(predicted_kl({}, errors));
  EXPECT_FALSE(predicted_kl(std::vector<double>{1, NAN}, errors));
  EXPECT_FALSE(predicted_kl(std::vector<double>{1, infinity}, errors));
  EXPECT_FALSE(predicted_kl(std::vector<double>{-infinity}, errors));
}

RoundingOptions options_of(const softfloat::Format& storage) {
  RoundingOptions options;
  options.shape.layers = 3;
  options.shape.hidden = 64;
  options.shape.ffn = 128;
  options.shape.query_heads = 4;
  options.shape.kv_heads = 2;
  options.shape.head_dim = 16;
  options.dispatch = find_dispatch("exact").value();
  options.storage = storage;
  return options;
}

// u is 8 times as large in bfloat16, and 2^13 times as large in binary16 as in binary32.
TEST(PredictedDrift, FollowsTheUnitRoundoff) {
  const auto bfloat16 = predicted_drift(options_of(softfloat::bfloat16)).value();
  const auto binary16 = predicted_drift(options_of(softfloat::binary16)).value();
  const auto binary32 = predicted_drift(options_of(softfloat::binary32)).value();
  ASSERT_EQ(bfloat16.size(), 3U);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    EXPECT_NEAR(std::log2(bfloat16[layer] / binary16[layer]), 3, 0.7) << layer;
    EXPECT_NEAR(std::log2(binary16[layer] / binary32[layer]), 13, 0.7) << layer;
    // Some roundings of at most u each, on the way to a sum of all of them.
    EXPECT_GT(bfloat16[layer], 0x1p-8 / 4);
    EXPECT_LT(bfloat16[layer], 0x1p-8 * 16);
  }
}

TEST(PredictedDrift, HearsOfNarrowSumsAndCaches) {
  RoundingOptions options = options_of(softfloat::binary32);
  options.dispatch = find_dispatch("fp32").value();
  const double plain = predicted_drift(options).value().back();
  options.formats.kv = softfloat::binary16;
  EXPECT_GT(predicted_drift(options).value().back(), 100 * plain);
  options.formats = {};
  options.formats.accumulator = softfloat::binary16;
  EXPECT_GT(predicted_drift(options).value().back(), 100 * plain);
}

TEST(PredictedDrift, HasNothingToSayOfBinary64) {
  RoundingOptions options = options_of(softfloat::binary64);
  EXPECT_EQ(predicted_drift(options).error().kind, ErrorKind::unavailable);
  options = options_of(softfloat::binary32);
  options.dispatch = find_dispatch("binary64").value();
  EXPECT_EQ(predicted_drift(options).error().kind, ErrorKind::unavailable);
}

}  // namespace
}  // namespace kvsim
