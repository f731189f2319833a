// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/head_errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/inputs.h"

namespace kvsim {
namespace {

// e_h = sqrt(rho) · shared + sqrt(1 - rho) · own: any two heads of a group are correlated by rho.
HeadErrors correlated(std::int64_t groups, std::int64_t group, std::int64_t elements, double rho) {
  HeadErrors errors{groups * group, group, elements, {}};
  for (std::int64_t h = 0; h < errors.heads; ++h) {
    for (std::int64_t i = 0; i < elements; ++i) {
      const double shared =
          normal(1, static_cast<std::uint64_t>(h / group), static_cast<std::uint64_t>(i));
      const double own = normal(2, static_cast<std::uint64_t>(h), static_cast<std::uint64_t>(i));
      errors.values.push_back(std::sqrt(rho) * shared + std::sqrt(1 - rho) * own);
    }
  }
  return errors;
}

TEST(HeadErrors, AKnownCorrelationGivesItsAmplification) {
  constexpr std::int64_t elements = 4096;
  for (const std::int64_t group : {2, 4, 8}) {
    for (const double rho : {0.0, 0.25, 0.5, 0.9}) {
      const HeadErrors errors = correlated(4, group, elements, rho);
      // Four standard errors of one pair's correlation; the mean of pairs is closer than that.
      EXPECT_NEAR(mean_correlation(errors), rho, 4 / std::sqrt(4 * elements))
          << group << ' ' << rho;
      const double expected = std::sqrt(1 + static_cast<double>(group - 1) * rho);
      EXPECT_NEAR(sum_over_heads_gain(errors), expected, 0.05 * expected) << group << ' ' << rho;
      EXPECT_DOUBLE_EQ(amplification(group, rho), expected);
    }
  }
}

TEST(HeadErrors, EqualErrorsReachTheCeilingAndOppositeOnesVanish) {
  const HeadErrors equal = correlated(2, 4, 64, 1.0);
  EXPECT_NEAR(mean_correlation(equal), 1, 1e-12);
  EXPECT_NEAR(sum_over_heads_gain(equal), 2, 1e-12);  // sqrt of 4
  HeadErrors opposite{2, 2, 3, {1, -2, 3, -1, 2, -3}};
  EXPECT_NEAR(mean_correlation(opposite), -1, 1e-12);
  EXPECT_EQ(sum_over_heads_gain(opposite), 0);
  EXPECT_EQ(amplification(2, -1), 0);
}

TEST(HeadErrors, MultiHeadAttentionHasNoPairs) {
  const HeadErrors single{2, 1, 2, {1, 2, 3, 4}};
  EXPECT_EQ(mean_correlation(single), 0);
  EXPECT_EQ(sum_over_heads_gain(single), 1);
}

TEST(HeadErrors, ErrorsWithoutVarianceCountAsUncorrelated) {
  const HeadErrors constant{2, 2, 2, {1, 1, 1, 2}};
  EXPECT_EQ(mean_correlation(constant), 0);
  const HeadErrors none{2, 2, 2, {0, 0, 0, 0}};
  EXPECT_EQ(sum_over_heads_gain(none), 1);
  EXPECT_EQ(projection_gain(none, 2, 4, 1), 0);
}

// A random projection takes no notice of how the errors are related: sqrt(outputs / inputs) of
// their norm, whether they are equal or independent.
TEST(HeadErrors, ARandomProjectionDoesNotAmplifyCorrelatedErrors) {
  constexpr std::int64_t head_dim = 32;
  constexpr std::int64_t positions = 8;
  const std::int64_t inputs = 8 * head_dim;
  for (const double rho : {0.0, 1.0}) {
    const HeadErrors errors = correlated(2, 4, positions * head_dim, rho);
    EXPECT_NEAR(projection_gain(errors, head_dim, inputs, 7), 1, 0.1) << rho;
    EXPECT_NEAR(projection_gain(errors, head_dim, inputs / 4, 7), 0.5, 0.05) << rho;
  }
}

}  // namespace
}  // namespace kvsim
