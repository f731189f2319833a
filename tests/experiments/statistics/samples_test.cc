// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

TEST(Samples, MomentsKeepSmallDeviationsFromALargeMean) {
  const Moments found = moments(List{1e15, 1e15 + 1, 1e15 + 2, 1e15 + 9});
  EXPECT_EQ(found.mean, 1e15 + 3);
  EXPECT_EQ(found.squares, 9 + 4 + 1 + 36);
  EXPECT_EQ(found.variance(), 50.0 / 3);
  EXPECT_EQ(moments(List(1'000'000, 0.1)).squares, 0);
}

TEST(Samples, CoMomentsByHand) {
  const CoMoments found = co_moments(List{1, 2, 3, 6}, List{2, 0, 1, 1});
  EXPECT_EQ(found.xx, 4 + 1 + 0 + 9);
  EXPECT_EQ(found.yy, 2);
  EXPECT_EQ(found.xy, -2 + 1);
  EXPECT_DOUBLE_EQ(found.correlation, -1 / std::sqrt(28.0));
  EXPECT_DOUBLE_EQ(found.unexplained, 27.0 / 28);
  EXPECT_EQ(co_moments(List{1, 2, 4}, List{3, 5, 9}).unexplained, 0);
  EXPECT_EQ(co_moments(List{1, 2, 4}, List{3, 3, 3}).correlation, 0);
}

TEST(Samples, EqualValuesShareTheMeanOfTheirRanks) {
  const Ranks found = mid_ranks(List{3, -1, 3, 3, 0, -1});
  EXPECT_EQ(found.ranks, (List{5, 1.5, 5, 5, 3, 1.5}));
  EXPECT_EQ(found.ties, (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(mid_ranks(List{0.0, -0.0}).ranks, (List{1.5, 1.5}));
}

// Type 7 by hand: place p · (n − 1), counted from 0.
TEST(Samples, QuantilesInterpolate) {
  const List values = {1, 2, 4, 8, 16};
  EXPECT_EQ(sorted_quantile(values, 0), 1);
  EXPECT_EQ(sorted_quantile(values, .5), 4);
  EXPECT_EQ(sorted_quantile(values, .625), 6);
  EXPECT_EQ(sorted_quantile(values, 1), 16);
  EXPECT_EQ(sorted_quantile(List{3}, .2), 3);
}

TEST(Samples, NumbersMustBeFinite) {
  EXPECT_FALSE(check_finite("list", List{1, -2}));
  const std::optional<Error> error =
      check_finite("list", List{1, -std::numeric_limits<double>::infinity()});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "list: number 2 is -inf; accepted: finite numbers");
}

}  // namespace
}  // namespace kvsim::statistics
