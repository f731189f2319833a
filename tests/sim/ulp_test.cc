// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/ulp.h"

#include <gtest/gtest.h>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

TEST(Ulp, ExponentOfTheLastPlace) {
  using softfloat::binary16;
  EXPECT_EQ(ulp_exponent(binary16, 1.0), -10);
  EXPECT_EQ(ulp_exponent(binary16, -1.5), -10);
  EXPECT_EQ(ulp_exponent(binary16, 2.0), -9);
  EXPECT_EQ(ulp_exponent(binary16, DoubleDouble(2.0, -0x1p-80)), -10);  // just below 2
  EXPECT_EQ(ulp_exponent(binary16, DoubleDouble(-2.0, 0x1p-80)), -10);
  EXPECT_EQ(ulp_exponent(binary16, DoubleDouble(2.0, 0x1p-80)), -9);
  EXPECT_EQ(ulp_exponent(binary16, DoubleDouble(-2.0, -0x1p-80)), -9);
  EXPECT_EQ(ulp_exponent(binary16, 0x1p-14), -24);  // smallest normal
  EXPECT_EQ(ulp_exponent(binary16, 0x1p-30), -24);  // below it
  EXPECT_EQ(ulp_exponent(binary16, 0.0), -24);
  EXPECT_EQ(ulp_exponent(binary16, 1e10), 5);  // beyond the largest: its unit
  EXPECT_EQ(ulp_exponent(softfloat::binary32, 1.0), -23);
  EXPECT_EQ(ulp_exponent(softfloat::bfloat16, 1.0), -7);
  EXPECT_EQ(ulp_exponent(softfloat::e4m3, 256.0), 5);
  EXPECT_EQ(ulp_exponent(softfloat::binary64, 0x1p-1060), -1074);
}

}  // namespace
}  // namespace kvsim
