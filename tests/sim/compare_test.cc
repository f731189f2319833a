// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/compare.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Bits half_one = 0x3c00;  // 1 in binary16
constexpr Bits half_two = 0x4000;  // 2
constexpr Bits half_infinity = 0x7c00;
constexpr Bits half_nan = 0x7e00;

TEST(Compare, UlpExponent) {
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

// By hand: errors 2^-10, 0, 2^-10 on 1, 1, 2 (the last exact value lies a quarter unit off).
TEST(Compare, HandComputedFigures) {
  const std::vector<Bits> computed = {half_one + 1, half_one, half_two};
  const std::vector<DoubleDouble> exact = {1.0, 1.0, 2.0 - 0x1p-12};
  const ErrorStatistics s = compare_with_exact(softfloat::binary16, computed, exact);
  EXPECT_EQ(s.count, 3);
  EXPECT_EQ(s.not_finite, 0);
  EXPECT_EQ(s.exact_zero, 0);
  EXPECT_EQ(s.maximum_ulp, 1);
  EXPECT_EQ(s.maximum_ulp_index, 0);
  EXPECT_DOUBLE_EQ(s.mean_relative_error, (0x1p-10 + 0x1p-12 / (2 - 0x1p-12)) / 3);
  const double reference = 1 + 1 + (2 - 0x1p-12) * (2 - 0x1p-12);
  EXPECT_DOUBLE_EQ(s.relative_l2, std::sqrt((0x1p-20 + 0x1p-24) / reference));
}

TEST(Compare, ZeroInfinityAndNan) {
  const std::vector<Bits> computed = {1, half_infinity, half_nan, half_one, half_one, 0x8000};
  const std::vector<DoubleDouble> exact = {
      0.0, 1.0, 1.0, infinity, std::numeric_limits<double>::quiet_NaN(), 0.0};
  const ErrorStatistics s = compare_with_exact(softfloat::binary16, computed, exact);
  EXPECT_EQ(s.count, 6);
  EXPECT_EQ(s.not_finite, 4);
  EXPECT_EQ(s.exact_zero, 2);
  EXPECT_EQ(s.mean_relative_error, 0);
  EXPECT_EQ(s.relative_l2, infinity);
  EXPECT_EQ(s.maximum_ulp, 1);  // the smallest subnormal off zero
  EXPECT_EQ(s.maximum_ulp_index, 0);
  EXPECT_EQ(compare_with_exact(softfloat::binary16, {}, {}), ErrorStatistics{});
  // All equal, all zero.
  const std::vector<Bits> zeros(3, 0);
  const std::vector<DoubleDouble> exact_zeros(3);
  EXPECT_EQ(compare_with_exact(softfloat::binary16, zeros, exact_zeros).relative_l2, 0);
}

TEST(Compare, NormsNeitherOverflowNorUnderflow) {
  const auto bits = softfloat::from_double;
  for (const double size : {0x1p1000, 0x1p-1000}) {
    const std::vector<Bits> computed = {bits(size * 1.5), bits(-size)};
    const std::vector<DoubleDouble> exact = {size, -size};
    const ErrorStatistics s = compare_with_exact(softfloat::binary64, computed, exact);
    EXPECT_DOUBLE_EQ(s.relative_l2, std::sqrt(0.125));
    EXPECT_DOUBLE_EQ(s.mean_relative_error, 0.25);
    EXPECT_EQ(s.maximum_ulp, 0x1p51);
  }
}

// Random numbers against the same statistics in 400 bits by MPFR.
TEST(Compare, AgainstMpfr) {
  constexpr std::size_t n = 20'000;
  std::vector<Bits> computed(n);
  std::vector<DoubleDouble> exact(n);
  mpfr_t error, reference, relative, squares, reference_squares, ulps, worst;
  mpfr_inits2(400, error, reference, relative, squares, reference_squares, ulps, worst,
              static_cast<mpfr_ptr>(nullptr));
  for (mpfr_ptr x : {relative, squares, reference_squares, worst}) mpfr_set_zero(x, 1);
  for (std::size_t i = 0; i < n; ++i) {
    computed[i] = philox_bits(1, 2, i) & 0xbbff;  // finite binary16
    const double value = softfloat::to_double(softfloat::binary16, computed[i]);
    const double noise = static_cast<double>(philox_bits(1, 3, i) >> 11) * 0x1p-53 - 0.5;
    exact[i] = two_sum(value + noise * 0x1p-9 + 0x1p-20, noise * 0x1p-70);
    mpfr_set_d(reference, exact[i].high, MPFR_RNDN);
    mpfr_add_d(reference, reference, exact[i].low, MPFR_RNDN);
    mpfr_d_sub(error, value, reference, MPFR_RNDN);
    mpfr_abs(error, error, MPFR_RNDN);
    mpfr_abs(reference, reference, MPFR_RNDN);
    const long exponent = std::max<long>(mpfr_get_exp(reference) - 1, -14);
    mpfr_mul_2si(ulps, error, 10 - exponent, MPFR_RNDN);
    mpfr_max(worst, worst, ulps, MPFR_RNDN);
    mpfr_div(ulps, error, reference, MPFR_RNDN);
    mpfr_add(relative, relative, ulps, MPFR_RNDN);
    mpfr_sqr(error, error, MPFR_RNDN);
    mpfr_add(squares, squares, error, MPFR_RNDN);
    mpfr_sqr(reference, reference, MPFR_RNDN);
    mpfr_add(reference_squares, reference_squares, reference, MPFR_RNDN);
  }
  mpfr_div_ui(relative, relative, n, MPFR_RNDN);
  mpfr_div(squares, squares, reference_squares, MPFR_RNDN);
  mpfr_sqrt(squares, squares, MPFR_RNDN);
  const ErrorStatistics s = compare_with_exact(softfloat::binary16, computed, exact);
  EXPECT_EQ(s.mean_relative_error, mpfr_get_d(relative, MPFR_RNDN));
  EXPECT_EQ(s.relative_l2, mpfr_get_d(squares, MPFR_RNDN));
  EXPECT_DOUBLE_EQ(s.maximum_ulp, mpfr_get_d(worst, MPFR_RNDN));
  mpfr_clears(error, reference, relative, squares, reference_squares, ulps, worst,
              static_cast<mpfr_ptr>(nullptr));
}

TEST(Compare, CountDifferent) {
  const std::vector<Bits> a = {0, half_one, half_nan, half_two};
  const std::vector<Bits> b = {0x8000, half_one, half_nan + 1, half_two};
  EXPECT_EQ(count_different(a, b), 2);
  EXPECT_EQ(count_different(a, a), 0);
}

}  // namespace
}  // namespace kvsim
