// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/binary32_kl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "run/divergence.h"
#include "sim/inputs.h"

namespace kvsim::metrics {
namespace {

using List = std::vector<double>;

// NumPy 2, float32 throughout, sums in a loop.
TEST(Binary32Kl, IsThatOfNumPy) {
  const auto kl =
      kl_in_binary32(List{3, 1.5, -2, 0.25, 2.75}, List{3.125, 1.375, -1.75, 0.25, 2.5});
  ASSERT_TRUE(kl);
  EXPECT_NEAR(*kl, 0.015193544328212738, 1.5e-7);  // float has 1e-7 of log p
  EXPECT_NE(*kl, 0.015193407339939805);            // in binary64
  EXPECT_EQ(*kl, static_cast<double>(static_cast<float>(*kl)));
}

TEST(Binary32Kl, EqualLogitsGiveNothing) {
  const List logits{3, -1, 0.125, std::numeric_limits<double>::lowest(), 2};
  EXPECT_EQ(*kl_in_binary32(logits, logits), 0);
}

TEST(Binary32Kl, RefusesWhatDivergenceRefuses) {
  EXPECT_FALSE(kl_in_binary32(List{1, 2}, List{1}));
  EXPECT_FALSE(kl_in_binary32(List{}, List{}));
}

// Five strong tokens of 32,000, noise of 1e-6: the exact KL is some 3e-13 to 5e-13, and binary32
// makes 2e-7 to 4e-7 of it, with either sign (NumPy: 1.8e-7, half of 20 draws negative).
TEST(Binary32Kl, HasAFloorThatLooksLikeAResult) {
  constexpr std::uint64_t tokens = 32000;
  double rounded = 0;
  double exact = 0;
  int negative = 0;
  constexpr std::uint64_t draws = 6;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    List p;
    List q;
    for (std::uint64_t i = 0; i < tokens; ++i) {
      p.push_back(3 * normal(1, draw, i) + (i < 5 ? 12 : 0));
      q.push_back(p.back() + 1e-6 * normal(2, draw, i));
    }
    const double kl = kl_in_binary32(p, q).value();
    rounded += std::abs(kl) / draws;
    negative += kl < 0 ? 1 : 0;
    exact += divergence(p, q).value().kl / draws;
  }
  EXPECT_GT(rounded, 5e-8);
  EXPECT_LT(rounded, 8e-7);
  EXPECT_GT(exact, 1e-13);
  EXPECT_LT(exact, 1e-12);
  EXPECT_GT(negative, 0);
  EXPECT_LT(negative, 6);
}

}  // namespace
}  // namespace kvsim::metrics
