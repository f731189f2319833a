// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/divergence.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/inputs.h"
#include "sim/log.h"
#include "tests/run/divergence_oracle.h"

namespace kvsim {
namespace {

using testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> gaussian(std::uint64_t stream, std::size_t count, double scale) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(scale * normal(7, stream, i)));
  }
  return values;
}

/// Logits with five strong candidates, as those of a language model have them.
std::vector<double> logits_of(std::uint64_t stream, std::size_t count) {
  std::vector<double> values = gaussian(stream, count, 3);
  for (std::size_t i = 0; i < std::min<std::size_t>(5, count); ++i) values[i] += 12;
  return values;
}

/// Compares with the definition at 1,200 bits; the error in units of what is promised.
void expect_near(const std::vector<double>& p_logits, const std::vector<double>& q_logits,
                 double& worst) {
  const Result<Divergence> found = divergence(p_logits, q_logits);
  ASSERT_TRUE(found) << found.error().message;
  const std::vector<oracle::Real> p = oracle::softmax(p_logits);
  const std::vector<oracle::Real> q = oracle::softmax(q_logits);
  const auto check = [&](double value, const oracle::Real& exact, const char* name) {
    const double error = std::fabs((oracle::Real(value) - exact).value());
    const double allowed = divergence_relative_error * exact.value() + divergence_floor;
    EXPECT_LE(error, allowed) << name << " " << value << " instead of " << exact.value();
    if (exact.value() > 1e-30) worst = std::max(worst, error / exact.value());
  };
  check(found->kl, oracle::relative_entropy(p, q), "KL");
  check(found->js, oracle::jensen_shannon(p, q), "JS");
}

TEST(Divergence, IsNearTheDefinitionHoweverSmallTheDifference) {
  double worst = 0;
  for (const double scale : {1e-14, 1e-10, 1e-6, 1e-3, 0.1, 0.5, 2.0, 30.0}) {
    const std::vector<double> p = logits_of(1, 200);
    std::vector<double> q = p;
    const std::vector<double> noise = gaussian(2, 200, 1);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] += scale * noise[i];
    expect_near(p, q, worst);
    expect_near(q, p, worst);
  }
  RecordProperty("worst_relative_error", fmt::format("{}", worst));
  EXPECT_LT(worst, 0x1p-49);  // measured: about 2^−52
}

TEST(Divergence, IsNearTheDefinitionForUnrelatedAndShiftedAndHugeLogits) {
  double worst = 0;
  expect_near(logits_of(3, 150), logits_of(4, 150), worst);
  std::vector<double> shifted = logits_of(3, 150);
  for (double& logit : shifted) logit += 1024;  // exact for these floats but for the lowest bits
  expect_near(logits_of(3, 150), shifted, worst);
  expect_near({0, 500}, {500, 0}, worst);
  expect_near({0, -5000, 3}, {1, 4, -6000}, worst);
  expect_near({5}, {-7}, worst);
}

TEST(Divergence, OfTwoTokensIsWhatTheFormulaSays) {
  // p = (3/4, 1/4), q = (1/2, 1/2): KL = 0.75 ln 1.5 + 0.25 ln 0.5.
  const Result<Divergence> found =
      divergence(std::vector{1.0986122886681098, 0.0}, std::vector{0.0, 0.0});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->kl, 0.13081203594113694, 1e-15);
  // m = (5/8, 3/8): ½ (0.75 ln 1.2 + 0.25 ln(2/3)) + ½ (0.5 ln 0.8 + 0.5 ln(4/3)).
  EXPECT_NEAR(found->js, 0.03382207556860523, 1e-15);
}

TEST(Divergence, OfEqualLogitsIsExactlyZero) {
  const std::vector<double> p = logits_of(5, 1000);
  EXPECT_EQ(*divergence(p, p), (Divergence{0, 0}));
}

TEST(Divergence, HasItsLimitsWhereATokenIsImpossible) {
  const std::vector<double> half{0, 0, -infinity};
  const std::vector<double> one{0, -infinity, -infinity};
  const Divergence from_one = *divergence(one, half);
  EXPECT_NEAR(from_one.kl, 0.69314718055994531, 1e-15);
  EXPECT_EQ(divergence(half, one)->kl, infinity);
  EXPECT_EQ(divergence(half, one)->js, from_one.js);
  // Nothing in common: JS is log 2.
  EXPECT_NEAR(divergence(std::vector{0.0, -infinity}, std::vector{-infinity, 0.0})->js,
              0.69314718055994531, 1e-15);
  EXPECT_NEAR(divergence(std::vector{0.0, -2000.0}, std::vector{-2000.0, 0.0})->js,
              0.69314718055994531, 1e-15);
  EXPECT_NEAR(divergence(std::vector{0.0, -2000.0}, std::vector{-2000.0, 0.0})->kl, 2000, 1e-11);
}

TEST(Divergence, RefusesWhatIsNoDistribution) {
  const auto message = [](std::vector<double> p, std::vector<double> q) {
    const Result<Divergence> result = divergence(p, q);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(message({}, {}), HasSubstr("p: no logits; accepted: "));
  EXPECT_THAT(message({1, 2}, {1}), HasSubstr("p has 2 logits and q has 1; accepted: "));
  EXPECT_THAT(message({1}, {std::nan("")}), HasSubstr("q: the logit of token 0 is nan; accepted"));
  EXPECT_THAT(message({1, infinity}, {1, 2}), HasSubstr("p: the logit of token 1 is inf; acc"));
  EXPECT_THAT(message({-infinity}, {1}), HasSubstr("p: every logit is -infinity; accepted: "));
}

TEST(LogProbability, IsTheLogarithmOfTheSoftmax) {
  const std::vector<double> logits = logits_of(6, 200);
  const std::vector<oracle::Real> exact = oracle::softmax(logits);
  const SoftmaxNormalizer normalizer = *softmax_normalizer(logits);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = log(exact[i]).value();  // rounded once to binary64
    EXPECT_EQ(log_probability(normalizer, logits[i]), expected) << i;
  }
  EXPECT_EQ(log_probability(normalizer, -infinity), -infinity);
}

TEST(LogReference, IsNearTheLogarithm) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const int exponent = static_cast<int>(i % 41) * 45 - 900;
    const DoubleDouble x(std::ldexp(0.5 + uniform(1, 2, i), exponent),
                         std::ldexp(uniform(1, 3, i) - 0.5, exponent - 54));
    const DoubleDouble found = log_reference(fast_two_sum(x.high, x.low));
    const oracle::Real exact = log(oracle::Real(x.high) + oracle::Real(x.low));
    const oracle::Real error = exact - oracle::Real(found.high) - oracle::Real(found.low);
    EXPECT_LE(std::fabs(error.value()), 0x1p-100 * std::max(1.0, std::fabs(exact.value()))) << i;
  }
  EXPECT_EQ(log_reference(1.0), DoubleDouble(0.0));
}

}  // namespace
}  // namespace kvsim
