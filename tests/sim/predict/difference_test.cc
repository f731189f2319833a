// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::binary16;

// binary16 has 1024 numbers from 1 to 2: neighbours there are 2^-10 apart, below 1 they are 2^-11.
TEST(Difference, CountsStepsByHand) {
  const std::vector<float> a{1.0F, 1.0F, 2.0F, 0.0F, -1.0F, 1.0F};
  const std::vector<float> b{1.0F, 1.0F + 0x1p-10F,    2.0F - 3 * 0x1p-10F, -0.0F,
                             1.0F, 1.0F - 5 * 0x1p-11F};
  const VectorDifference found = compare_vectors(binary16, a, b);
  EXPECT_EQ(found.elements, 6);
  EXPECT_EQ(found.differing, 5);
  EXPECT_EQ(found.not_finite, 0);
  // From -1 to 1: 15 binades of 1024 numbers and the subnormals' 1024, once on each side of 0.
  EXPECT_EQ(found.max_ulp, 2 * 15 * 1024);
  ASSERT_EQ(found.histogram.size(), 17U);
  EXPECT_EQ(found.histogram[0], (UlpBin{0, 0, 2}));
  EXPECT_EQ(found.histogram[1], (UlpBin{1, 1, 1}));
  EXPECT_EQ(found.histogram[2], (UlpBin{2, 2, 0}));
  EXPECT_EQ(found.histogram[3], (UlpBin{3, 4, 1}));
  EXPECT_EQ(found.histogram[4], (UlpBin{5, 8, 1}));
  EXPECT_EQ(found.histogram[16], (UlpBin{16385, 32768, 1}));
  EXPECT_EQ(found.max_absolute, 2.0);
}

TEST(Difference, NormsAndCosineByHand) {
  const VectorDifference found =
      compare_vectors(binary16, std::vector<float>{3.0F, 4.0F}, std::vector<float>{3.0F, 0.0F});
  EXPECT_EQ(found.l2, 4.0);
  EXPECT_EQ(found.reference_l2, 3.0);
  EXPECT_EQ(found.relative_l2, 4.0 / 3.0);
  EXPECT_DOUBLE_EQ(found.cosine, 0.6);
}

TEST(Difference, WhatIsNotFiniteStandsInNoFigure) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const VectorDifference found =
      compare_vectors(binary16, std::vector<float>{infinity, nan, -nan, 1.0F, infinity},
                      std::vector<float>{1.0F, nan, nan, 1.0F, infinity});
  EXPECT_EQ(found.differing, 1);
  EXPECT_EQ(found.not_finite, 4);
  EXPECT_EQ(found.l2, 0);
  EXPECT_EQ(found.max_ulp, 0);
  EXPECT_EQ(found.cosine, 1);
}

TEST(Difference, PartsAddUpToTheWhole) {
  DifferenceSums sums;
  sums.add(binary16, std::vector<float>{1.0F}, std::vector<float>{2.0F});
  sums.add(binary16, std::vector<float>{5.0F, 0.5F}, std::vector<float>{3.0F, 0.5F});
  const VectorDifference parts = sums.total();
  const VectorDifference whole = compare_vectors(binary16, std::vector<float>{1.0F, 5.0F, 0.5F},
                                                 std::vector<float>{2.0F, 3.0F, 0.5F});
  EXPECT_EQ(parts.l2, whole.l2);
  EXPECT_EQ(parts.relative_l2, whole.relative_l2);
  EXPECT_EQ(parts.histogram, whole.histogram);
  EXPECT_EQ(parts.differing, 2);
  EXPECT_DOUBLE_EQ(parts.share(), 2.0 / 3.0);
}

}  // namespace
}  // namespace kvsim
