// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

TEST(Tolerance, TwoDigitsUp) {
  EXPECT_EQ(two_digits_up(1.0), 1.0);
  EXPECT_EQ(two_digits_up(0.00101), 0.0011);
  EXPECT_EQ(two_digits_up(0.000976562), 0.00098);
  EXPECT_EQ(two_digits_up(9.91), 10.0);
  EXPECT_EQ(two_digits_up(0.25), 0.25);
  EXPECT_EQ(two_digits_up(0), 0);
}

TEST(Tolerance, HasOneUnitInTheLastPlaceAndAtLeastHalfAStep) {
  // binary16: 2^-10; half a step at 3 is 2^-10 as well.
  const Tolerance none = make_tolerance({softfloat::binary16, 3.0, 0.0, 0.0, 10});
  EXPECT_EQ(none.relative, 0.00098);
  EXPECT_EQ(none.absolute, 0.00098);
  EXPECT_EQ(make_tolerance({softfloat::binary16, 3.0, 0.0, 0.5, 10}).absolute, 0.5);
  const Tolerance bf16 = make_tolerance({softfloat::bfloat16, 1.0, 0.0, 0.0, 10});
  EXPECT_EQ(bf16.relative, 0.0079);  // 2^-7
}

// 1,000 differences of the measured size stay within the absolute part alone about 95 times in 100.
TEST(Tolerance, CoversNormalDifferences) {
  constexpr std::int64_t elements = 1000;
  const Tolerance tolerance = make_tolerance({softfloat::binary16, 1.0, 0.01, 0.0, elements});
  int within = 0;
  for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
    double largest = 0;
    for (std::uint64_t i = 0; i < elements; ++i) {
      largest = std::max(largest, std::abs(0.01 * normal(3, repeat, i)));
    }
    within += largest <= tolerance.absolute ? 1 : 0;
  }
  EXPECT_NEAR(within / 200.0, 0.95, 0.05);  // the two digits round it up, never down
  EXPECT_GE(within, 180);
}

}  // namespace
}  // namespace kvsim
