// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/drift.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim::metrics {
namespace {

TEST(Drift, OfEqualVectorsIsExactlyZero) {
  const std::vector<double> a{3, -4, 0};
  const Drift same = drift(softfloat::bfloat16, a, a).value();
  EXPECT_EQ(same.norm, 5);
  EXPECT_EQ(same.l2, 0);
  EXPECT_EQ(same.relative, 0);
  EXPECT_EQ(same.cosine_distance, 0);
  EXPECT_EQ(same.largest_ulps, 0);
  EXPECT_EQ(same.differing, 0);
}

// By hand: a − b = (0, 0, 3, −4); around 8 numbers of bfloat16 lie 2^-4 apart, around 4 2^-5.
TEST(Drift, FollowsItsDefinitions) {
  const std::vector<double> a{12, 0, 8, 0};
  const std::vector<double> b{12, 0, 5, 4};
  const Drift found = drift(softfloat::bfloat16, a, b).value();
  EXPECT_DOUBLE_EQ(found.norm, 14.422205101855956);  // √208
  EXPECT_EQ(found.l2, 5);
  EXPECT_DOUBLE_EQ(*found.relative, 0.34668762264076824);  // 5 ÷ √208
  // 1 − (144 + 40) ÷ √(208 · 185)
  EXPECT_NEAR(*found.cosine_distance, 0.0620055011708865, 1e-15);
  EXPECT_EQ(found.largest_ulps, 4 * 32);
  EXPECT_EQ(found.median_ulps, 24);  // of 0, 0, 48, 128
  EXPECT_EQ(found.differing, 2);
}

// 1 − cos of (1, 0) and (1, t) is t² ÷ 2 to first order: far below what 1 − x can show.
TEST(Drift, OfSmallAnglesDoesNotCancel) {
  const std::vector<double> a{1, 0};
  const std::vector<double> b{1, 0x1p-40};
  EXPECT_NEAR(*drift(softfloat::binary64, a, b).value().cosine_distance, 0x1p-81, 0x1p-130);
}

TEST(Drift, OfLargeNumbersDoesNotOverflow) {
  const std::vector<double> a{0x1p1000, 0};
  const std::vector<double> b{0, 0x1p1000};
  const Drift found = drift(softfloat::binary64, a, b).value();
  EXPECT_EQ(found.norm, 0x1p1000);
  EXPECT_NEAR(*found.cosine_distance, 1, 1e-15);
}

TEST(Drift, OfAZeroVectorHasNoRelativeValue) {
  const std::vector<double> zero{0, 0};
  const std::vector<double> b{3, 4};
  const Drift found = drift(softfloat::binary32, zero, b).value();
  EXPECT_EQ(found.l2, 5);
  EXPECT_FALSE(found.relative);
  EXPECT_FALSE(found.cosine_distance);
}

TEST(Drift, RefusesWhatIsNoPair) {
  const std::vector<double> a{1, 2};
  const std::vector<double> b{1};
  const std::vector<double> odd{1, std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(drift(softfloat::bfloat16, a, b));
  EXPECT_FALSE(drift(softfloat::bfloat16, {}, {}));
  EXPECT_FALSE(drift(softfloat::bfloat16, a, odd));
}

// The median magnitude is 1: above 100 is massive, 100 itself is not.
TEST(Massive, IsRelativeToTheMedian) {
  const std::vector<double> a{1, -1, 1, -101, 100};
  const std::vector<double> b{2, 2, 2, 2, 2};
  const WithoutMassive rest = without_massive(a, b);
  EXPECT_EQ(rest.massive, 1);
  EXPECT_EQ(rest.a, (std::vector<double>{1, -1, 1, 100}));
  EXPECT_EQ(rest.b.size(), 4U);
  EXPECT_EQ(without_massive(a, b, 99).massive, 2);
}

}  // namespace
}  // namespace kvsim::metrics
