// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/margin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

using testing::ElementsAre;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(LargestLogits, GivesEqualLogitsToTheLowerIndex) {
  const std::vector<double> logits{1, 7, -2, 7, 5, 7};
  EXPECT_THAT(largest_logits(logits, 4),
              ElementsAre(TokenLogit{1, 7}, TokenLogit{3, 7}, TokenLogit{5, 7}, TokenLogit{4, 5}));
  EXPECT_THAT(largest_logits(std::vector{0.0, -0.0}, 9),
              ElementsAre(TokenLogit{0, 0.0}, TokenLogit{1, 0.0}));
  EXPECT_THAT(largest_logits(std::vector{-0.0, 0.0}, 1), ElementsAre(TokenLogit{0, 0.0}));
  EXPECT_TRUE(largest_logits(logits, 0).empty());
}

TEST(Margin, CountsUnitsOfTheLogitsOwnMagnitude) {
  // bfloat16 has 8 significant bits: between 16 and 32 its numbers lie 2^−3 apart, binary16 has
  // 11 bits and 2^−6, binary32 24 bits and 2^−19.
  EXPECT_EQ(margin(softfloat::bfloat16, 20, 19.75), (Margin{0.25, 2}));
  EXPECT_EQ(margin(softfloat::binary16, 20, 19.75), (Margin{0.25, 16}));
  EXPECT_EQ(margin(softfloat::binary32, 20, 19.75), (Margin{0.25, 131072}));
  EXPECT_EQ(margin(softfloat::bfloat16, 16, 15.9375), (Margin{0.0625, 0.5}));
  EXPECT_EQ(margin(softfloat::bfloat16, -20, -20.125), (Margin{0.125, 1}));
  EXPECT_EQ(margin(softfloat::bfloat16, 3, 3), (Margin{0, 0}));
}

TEST(TopTwoError, IsTheChangeOfTheDifferenceOfTheFirstListsTopTwo) {
  // p prefers token 2 to token 0 by 1.5; q prefers 0 by 0.5: the change is −2.
  const std::vector<double> p{4, -1, 5.5};
  const std::vector<double> q{6, 100, 5.5};
  EXPECT_EQ(top_two_error(p, q), -2.0);
  EXPECT_EQ(top_two_error(p, p), 0.0);
  // Two differences of 2^60 and a little cancel without loss.
  EXPECT_EQ(top_two_error(std::vector{0x1p60, 1.0}, std::vector{0x1p60, 1.5}), -0.5);
  EXPECT_FALSE(top_two_error(std::vector{1.0}, std::vector{1.0}));
  EXPECT_FALSE(top_two_error(p, std::vector{1.0, 2.0}));
  EXPECT_FALSE(top_two_error(std::vector{1.0, -infinity}, std::vector{1.0, 2.0}));
}

}  // namespace
}  // namespace kvsim
