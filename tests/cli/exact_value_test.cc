// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The values that `eval` explains results with, against values worked out by hand and against
// MPFR for square roots and decimals.
#include "cli/exact_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::binary16;
using softfloat::binary64;
using ::testing::StartsWith;

ExactValue half(std::uint64_t bits) { return exact_value(binary16, bits); }

TEST(ExactValue, ReadsEveryKindOfCode) {
  EXPECT_EQ(to_text(half(0x3c00)), "1");
  EXPECT_EQ(to_text(half(0x0001)), "5.9604644775390625e-08");  // 2^-24
  EXPECT_EQ(to_text(half(0x7bff)), "65504");
  EXPECT_EQ(to_text(half(0x8000)), "-0");
  EXPECT_EQ(to_text(half(0xfc00)), "-inf");
  EXPECT_EQ(to_text(half(0x7c01)), "nan");
  EXPECT_EQ(to_text(exact_value(softfloat::e4m3, 0x7e)), "448");
  EXPECT_EQ(to_text(exact_value(softfloat::e4m3, 0xff)), "nan");
  EXPECT_EQ(to_text(exact_value(softfloat::e4m3fnuz, 0x7f)), "240");
  EXPECT_EQ(to_text(exact_value(softfloat::e4m3fnuz, 0x80)), "nan");
  EXPECT_EQ(to_text(exact_value(softfloat::e2m1, 0xf)), "-6");
  EXPECT_EQ(to_text(exact_value(softfloat::e8m0, 0x80)), "2");
}

TEST(ExactValue, FollowsTheRulesOfInfinityAndZero) {
  const ExactValue infinity = half(0x7c00);
  const ExactValue zero = half(0);
  EXPECT_EQ(to_text(exact_add(infinity, exact_negated(infinity))), "nan");
  EXPECT_EQ(to_text(exact_add(infinity, half(0x3c00))), "inf");
  EXPECT_EQ(to_text(exact_multiply(infinity, zero)), "nan");
  EXPECT_EQ(to_text(exact_multiply(infinity, half(0xbc00))), "-inf");
  EXPECT_EQ(to_text(exact_divide(half(0xbc00), zero)), "-inf");
  EXPECT_EQ(to_text(exact_divide(zero, zero)), "nan");
  EXPECT_EQ(to_text(exact_divide(half(0xbc00), infinity)), "-0");
  EXPECT_EQ(to_text(exact_square_root(half(0xbc00))), "nan");
  EXPECT_EQ(to_text(exact_square_root(half(0x8000))), "-0");
}

TEST(ExactValue, PrintsTwentyDigitsWhereTheValueHasNoEnd) {
  EXPECT_EQ(to_text(exact_divide(half(0x3c00), half(0x4200))), "0.33333333333333333333…");
  EXPECT_EQ(to_text(exact_divide(half(0x4000), half(0x4200))), "0.66666666666666666666…");
  EXPECT_EQ(to_text(exact_value(binary64, 1)), "4.9406564584124654417…e-324");
}

TEST(ExactValue, SquareRootsHaveTheDigitsOfMpfr) {
  mpfr_t root;
  mpfr_init2(root, 200);
  for (std::uint64_t bits = 0x3c01; bits < 0x3c01 + 200; bits += 7) {  // 1 + k × 2^-10
    mpfr_set_d(root, std::ldexp(static_cast<double>(bits - 0x3c00 + 1024), -10), MPFR_RNDN);
    mpfr_sqrt(root, root, MPFR_RNDZ);
    std::array<char, 64> digits{};
    mpfr_snprintf(digits.data(), digits.size(), "%.19RZf", root);
    const std::string found = to_text(exact_square_root(half(bits)));
    EXPECT_THAT(found, StartsWith(digits.data())) << "code " << bits;
  }
  mpfr_clear(root);
  EXPECT_EQ(to_text(exact_square_root(half(0x4400))), "2");  // of 4
}

TEST(UlpError, CountsInTheBinadeOfTheResult) {
  // 1 + 2^-12 rounds to 1: a quarter of 2^-10 below.
  const ExactValue above_one = exact_add(half(0x3c00), half(0x0c00));
  EXPECT_EQ(ulp_error(binary16, 0x3c00, above_one).value, -0.25);
  // The same value against the neighbour above: 2^-10 - 2^-12.
  EXPECT_EQ(ulp_error(binary16, 0x3c01, above_one).value, 0.75);
  // Below the normal numbers the unit is the smallest subnormal, 2^-24, for zero too.
  const ExactValue half_smallest = exact_multiply(half(0x0001), half(0x3800));
  EXPECT_EQ(ulp_error(binary16, 0x0000, half_smallest).value, -0.5);
  EXPECT_EQ(ulp_error(binary16, 0x0001, half_smallest).value, 0.5);
}

TEST(UlpError, IsInfiniteOrUndefinedWhereNoNumberCounts) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ulp_error(binary16, 0x7c00, half(0x7bff)).value, infinity);
  EXPECT_EQ(ulp_error(binary16, 0x7bff, half(0x7c00)).value, -infinity);
  EXPECT_EQ(ulp_error(binary16, 0x7c00, half(0x7c00)).value, 0);
  EXPECT_FALSE(ulp_error(binary16, 0x7e00, half(0x3c00)).is_defined);
  EXPECT_FALSE(ulp_error(binary16, 0x3c00, half(0x7e00)).is_defined);
}

}  // namespace
}  // namespace kvsim
