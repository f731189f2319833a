// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/column_walks.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/flip/random.h"
#include "sim/engine/matrix.h"
#include "sim/error_bounds.h"
#include "sim/order.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

constexpr std::size_t terms = 70;
constexpr std::size_t columns = 37;

std::vector<SimdLevel> levels() {
  std::vector<SimdLevel> all{SimdLevel::scalar, SimdLevel::avx2, SimdLevel::avx512};
  std::erase_if(all, [](SimdLevel level) { return level > best_simd_level(); });
  return all;
}

/// Numbers of 11 bits with exponents that are spread by so many powers of two.
std::vector<float> numbers(std::size_t count, int spread, Random& random) {
  std::vector<float> result(count);
  for (float& x : result) {
    const double significand = static_cast<double>(random.between(1024, 2047));
    x = static_cast<float>(std::ldexp(random.once_in(2) ? significand : -significand,
                                      -10 - static_cast<int>(random.below(spread + 1))));
  }
  return result;
}

/// Σ a b in 600 bits, which hold every partial sum exactly.
double exact_dot(const std::vector<float>& a, const std::vector<float>& b, double subtracted) {
  mpfr_t sum;
  mpfr_t product;
  mpfr_init2(sum, 600);
  mpfr_init2(product, 600);
  mpfr_set_d(sum, -subtracted, MPFR_RNDN);
  for (std::size_t k = 0; k < a.size(); ++k) {
    mpfr_set_flt(product, a[k], MPFR_RNDN);
    mpfr_mul_d(product, product, static_cast<double>(b[k]), MPFR_RNDN);
    mpfr_add(sum, sum, product, MPFR_RNDN);
  }
  const double result = mpfr_get_d(sum, MPFR_RNDN);
  mpfr_clear(sum);
  mpfr_clear(product);
  return result;
}

std::vector<float> column(const ColumnMatrix& matrix, std::size_t j) {
  std::vector<float> result(matrix.rows());
  for (std::size_t k = 0; k < result.size(); ++k) result[k] = matrix.row(k)[j];
  return result;
}

TEST(ColumnMatrix, TransposesAndFillsUp) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const ColumnMatrix as_is(values, 2, 3, false);
  const ColumnMatrix turned(values, 2, 3, true);
  EXPECT_EQ(as_is.row(1)[0], 4);
  EXPECT_EQ(turned.row(1)[0], 2);
  EXPECT_EQ(turned.row(0)[2], 5);
  EXPECT_EQ(as_is.row(0)[3], 0);
  EXPECT_GE(as_is.stride(), 3U);
}

// The oracle is MPFR.
TEST(ColumnWalks, LongProductsAreGoodToABoundAtEveryLevel) {
  Random random({1, 2, 3});
  const std::vector<float> a = numbers(terms, 30, random);
  const ColumnMatrix b(numbers(terms * columns, 30, random), terms, columns, false);
  const std::vector<double> factors(a.begin(), a.end());
  std::vector<double> first_high;
  std::vector<double> first_low;
  for (const SimdLevel level : levels()) {
    std::vector<double> high(b.stride());
    std::vector<double> low(b.stride());
    std::vector<double> magnitudes(b.stride());
    add_long_products(factors, b, high, low, level);
    std::vector<double> absolute(factors);
    for (double& x : absolute) x = std::abs(x);
    add_magnitudes(absolute, b, magnitudes, level);
    for (std::size_t j = 0; j < columns; ++j) {
      const double off = exact_dot(a, column(b, j), high[j]) - low[j];
      EXPECT_LE(std::abs(off), 2 * 0x1p-106 * terms * magnitudes[j]);
      std::vector<float> own = column(b, j);
      std::vector<float> positive = a;
      for (float& x : own) x = std::abs(x);
      for (float& x : positive) x = std::abs(x);
      EXPECT_NEAR(magnitudes[j], exact_dot(positive, own, 0), 1e-13 * magnitudes[j]);
    }
    if (first_high.empty()) {
      first_high = high;
      first_low = low;
    }
    EXPECT_EQ(high, first_high);
    EXPECT_EQ(low, first_low);
  }
}

// The oracle is the unit itself, and MPFR: hostile terms, some of which are far below the others.
TEST(ColumnWalks, UnitChainsStayWithinTheirBounds) {
  for (const std::string name : {"a100.mma.f16.f32", "h100.wgmma.f16.f32", "v100.mma.f16.f32",
                                 "mi300.mfma.f16.f32", "a100.mma.f16.f16"}) {
    const MatrixUnit& unit = *find_matrix_unit(name);
    const UnitErrors errors = unit_errors(unit).value();
    const Order order = parse_order("mma(" + name + ")").value();
    double closest = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Random random({4, seed, 0});
      const int spread = static_cast<int>(seed % 6) * 2;
      const std::vector<float> a = numbers(terms, spread, random);
      std::vector<float> values = numbers(terms * columns, spread, random);
      if (seed % 2 == 1) {  // all products of one sign
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = std::copysign(values[i], a[i / columns]);
        }
      }
      const ColumnMatrix b(values, terms, columns, false);
      std::vector<float> computed(columns);
      ASSERT_TRUE(sum_matrix({.order = order,
                              .product = Product::rounded,
                              .input = softfloat::binary16,
                              .accumulator = softfloat::binary32,
                              .rows = 1,
                              .terms = terms,
                              .columns = columns,
                              .a = a.data(),
                              .a_stride = terms,
                              .b = values.data(),
                              .b_stride = columns},
                             computed.data(), columns));
      std::vector<WalkFactor> factors;
      for (const float x : a) {
        const double power = power_of_exponent(x);
        factors.push_back({static_cast<double>(x), 0, power, power * 0x1p-10});
      }
      UnitChain first(b.stride());
      for (const SimdLevel level : levels()) {
        UnitChain chain(b.stride());
        const WalkFormat format{.smallest_normal = 0x1p-14, .ulp_of_one = 0x1p-10};
        walk_unit_chain(errors, factors, b, 0, format, {}, chain, level);
        if (level == SimdLevel::scalar) first = chain;
        EXPECT_EQ(chain.bound, first.bound);
        EXPECT_EQ(chain.partial, first.partial);
      }
      for (std::size_t j = 0; j < columns; ++j) {
        const double error = std::abs(exact_dot(a, column(b, j), computed[j]));
        EXPECT_LE(error, first.bound[j]) << name << ' ' << seed;
        closest = std::max(closest, error / first.bound[j]);
      }
    }
    EXPECT_GT(closest, 0.4) << name;
  }
}

}  // namespace
}  // namespace kvsim::fuzz
