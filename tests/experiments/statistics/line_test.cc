// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/line.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

// scipy.stats.linregress and scipy.stats.t.ppf(0.975, 4), SciPy.
TEST(Line, SlopeAndIntervalAreThoseOfSciPy) {
  const auto fit = fit_line(List{1, 2, 4, 7, 11, 16}, List{2.5, 1.75, 4, 5.5, 11.25, 12});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->slope.value, 0.7397602397602396, 1e-8);
  EXPECT_NEAR(fit->slope.low, 0.4624017642425048, 1e-8);
  EXPECT_NEAR(fit->slope.high, 1.0171187152779746, 1e-8);
  EXPECT_NEAR(fit->intercept, 1.111638361638363, 1e-8);
  EXPECT_NEAR(fit->residual, 1.290309111181349, 1e-8);
  EXPECT_EQ(fit->points, 6);
}

TEST(Line, PointsOnALineHaveNoInterval) {
  const auto fit = fit_line(List{0, 1, 2, 5}, List{3, 1, -1, -7});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->slope, (Estimate{-2, -2, -2}));
  EXPECT_EQ(fit->intercept, 3);
  EXPECT_EQ(fit->residual, 0);
}

TEST(Line, RefusesWhatHasNoSlope) {
  EXPECT_EQ(fit_line(List{1, 2}, List{1, 2}).error().kind, ErrorKind::cannot_tell);
  EXPECT_EQ(fit_line(List{2, 2, 2}, List{1, 2, 3}).error().kind, ErrorKind::cannot_tell);
  EXPECT_EQ(fit_line(List{1, 2, 3}, List{1, 2}).error().kind, ErrorKind::usage);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fit_line(List{1, 2, 3}, List{1, nan, 3}).error().kind, ErrorKind::usage);
  EXPECT_EQ(fit_line(List{1, 2, 3}, List{1, 2, 3}, 1).error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace kvsim::statistics
