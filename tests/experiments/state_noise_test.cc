// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/state_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "softfloat/formats.h"
#include "tests/experiments/small_sequence.h"

/// Noise on caches of a few numbers, against steps worked out by hand.
namespace kvsim::experiments {
namespace {

using softfloat::bfloat16;
using test::SmallSequence;

TEST(Stepped, GoesAlongTheNumbersOfTheFormat) {
  EXPECT_EQ(stepped(bfloat16, 1, 0), 1);
  EXPECT_EQ(stepped(bfloat16, 1, 1), 1 + 0x1p-7);
  EXPECT_EQ(stepped(bfloat16, 1, -1), 1 - 0x1p-8);  // a binade lower
  EXPECT_EQ(stepped(bfloat16, -1, 1), -1 + 0x1p-8);
  EXPECT_EQ(stepped(bfloat16, -1, -2), -1 - 0x1p-6);
  EXPECT_EQ(stepped(bfloat16, 0, 1), 0x1p-133);
  EXPECT_EQ(stepped(bfloat16, 0x1p-133, -3), -0x1p-132);
  EXPECT_EQ(stepped(softfloat::binary32, 1, 1), 1 + 0x1p-23);
  EXPECT_EQ(stepped(softfloat::binary16, 65504, 5), 65504);
  EXPECT_EQ(stepped(softfloat::binary64, 1, -1), 1 - 0x1p-53);
}

TEST(UlpNoise, MovesEveryNumberByThatManySteps) {
  const SmallSequence before(1, bfloat16);
  for (const double ulps : {1.0, 2.0}) {
    SmallSequence after(1, bfloat16);
    ASSERT_TRUE(add_ulp_noise(after, 3, ulps, {.seed = 1, .stream = 7}));
    int up = 0;
    for (std::size_t i = 0; i < 24; ++i) {
      const double steps = after.cells()[i] > before.cells()[i] ? ulps : -ulps;
      EXPECT_EQ(after.cells()[i],
                stepped(bfloat16, before.cells()[i], static_cast<std::int64_t>(steps)));
      if (steps > 0) ++up;
    }
    EXPECT_GT(up, 4);
    EXPECT_LT(up, 20);
    SmallSequence again(1, bfloat16);
    ASSERT_TRUE(add_ulp_noise(again, 3, ulps, {.seed = 1, .stream = 7}));
    EXPECT_EQ(again.cells(), after.cells());
  }
  SmallSequence half(1, bfloat16);
  ASSERT_TRUE(add_ulp_noise(half, 3, 0.5, {}));
  const auto distance = state_distance(before, half, 3);
  ASSERT_TRUE(distance);
  EXPECT_GT(distance->differing, 4);
  EXPECT_LT(distance->differing, 20);
}

TEST(StateDistance, IsOfAllNumbers) {
  const auto distance = state_distance(SmallSequence(2), SmallSequence(1), 3);
  ASSERT_TRUE(distance);
  EXPECT_EQ(distance->squares, 4900);        // 1² + 2² + … + 24²
  EXPECT_EQ(distance->norm_squares, 19600);  // four times as much
  EXPECT_EQ(distance->differing, 24);
  EXPECT_EQ(distance->numbers, 24);
}

TEST(MatchedNoise, IsAsLargeAsTheOtherCachesDistance) {
  SmallSequence other(1, bfloat16);
  ASSERT_TRUE(add_ulp_noise(other, 3, 0.5, {.seed = 3}));
  const SmallSequence before(1, bfloat16);
  SmallSequence noisy(1, bfloat16);
  ASSERT_TRUE(add_matched_noise(noisy, other, 3, {}));
  const double wanted = state_distance(before, other, 3)->squares;
  const double given = state_distance(before, noisy, 3)->squares;
  EXPECT_GE(given, wanted);
  // At most one step too many in each of four blocks; a step below 25 is at most 1/8.
  EXPECT_LE(given, wanted + 4.0 / 64);
  EXPECT_NE(noisy.cells(), other.cells());
  SmallSequence same(1, bfloat16);
  ASSERT_TRUE(add_matched_noise(same, before, 3, {}));
  EXPECT_EQ(same.cells(), before.cells());
  // A distance that single steps do not reach.
  SmallSequence far(1, bfloat16);
  ASSERT_TRUE(add_matched_noise(far, SmallSequence(1.5, bfloat16), 3, {}));
  EXPECT_GE(state_distance(before, far, 3)->squares, 0.25 * 4900);
}

}  // namespace
}  // namespace kvsim::experiments
