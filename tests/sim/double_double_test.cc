// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/double_double.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/philox.h"

namespace kvsim {
namespace {

constexpr double u = 0x1p-53;
constexpr std::uint64_t samples = 100'000;

// Exact results and relative errors, in enough bits for sums of numbers 2^400 apart.
class Exact {
 public:
  Exact() { mpfr_inits2(700, a_, b_, result_, static_cast<mpfr_ptr>(nullptr)); }
  ~Exact() { mpfr_clears(a_, b_, result_, static_cast<mpfr_ptr>(nullptr)); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  using Operation = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

  // |got − operation(a, b)| / |operation(a, b)|; 0 where both are 0.
  double relative_error(DoubleDouble got, Operation operation, DoubleDouble a, DoubleDouble b) {
    load(a_, a);
    load(b_, b);
    operation(result_, a_, b_, MPFR_RNDN);
    load(a_, got);
    mpfr_sub(a_, a_, result_, MPFR_RNDN);
    if (mpfr_zero_p(a_)) return 0;
    mpfr_div(a_, a_, result_, MPFR_RNDN);
    return std::fabs(mpfr_get_d(a_, MPFR_RNDA));
  }

 private:
  static void load(mpfr_ptr to, DoubleDouble x) {
    mpfr_set_d(to, x.high, MPFR_RNDN);
    mpfr_add_d(to, to, x.low, MPFR_RNDN);
  }
  mpfr_t a_, b_, result_;
};

int square_root(mpfr_ptr to, mpfr_srcptr a, mpfr_srcptr, mpfr_rnd_t rounding) {
  return mpfr_sqrt(to, a, rounding);
}

double random_double(std::uint64_t stream, std::uint64_t index, int exponents) {
  const std::uint64_t bits = philox_bits(7, stream, index);
  const double fraction = 1 + static_cast<double>(bits >> 12) * 0x1p-52;
  const int exponent = static_cast<int>(philox_bits(8, stream, index) %
                                        static_cast<std::uint64_t>(2 * exponents + 1)) -
                       exponents;
  return std::ldexp((bits & 1) != 0 ? -fraction : fraction, exponent);
}

// A random double-double; one in eight has a zero low part, one in eight a tiny one.
DoubleDouble random_pair(std::uint64_t stream, std::uint64_t index, int exponents) {
  const double high = random_double(stream, index, exponents);
  const double low = random_double(stream + 100, index, 0) * 0x1p-54 *
                     std::ldexp(1.0, std::ilogb(high) - static_cast<int>(index % 8 == 1 ? 40 : 0));
  return index % 8 == 0 ? DoubleDouble(high) : two_sum(high, low);
}

TEST(DoubleDouble, ErrorFreeTransformations) {
  Exact exact;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const double a = random_double(1, i, 60);
    const double b = random_double(2, i, 60);
    const DoubleDouble sum = two_sum(a, b);
    const DoubleDouble product = two_product(a, b);
    ASSERT_EQ(exact.relative_error(sum, mpfr_add, a, b), 0);
    ASSERT_EQ(exact.relative_error(product, mpfr_mul, a, b), 0);
    ASSERT_EQ(sum.high, a + b);
    ASSERT_EQ(product.high, a * b);
    const bool ordered = std::fabs(a) >= std::fabs(b);
    ASSERT_EQ(ordered ? fast_two_sum(a, b) : fast_two_sum(b, a), sum);
  }
}

TEST(DoubleDouble, ErrorBoundsOfArithmetic) {
  Exact exact;
  double add = 0, add_double = 0, multiply = 0, multiply_double = 0, divide = 0, divide_double = 0,
         root = 0;
  const auto raise = [](double& worst, double error) { worst = std::fmax(worst, error); };
  for (std::uint64_t i = 0; i < samples; ++i) {
    const int exponents = i % 2 == 0 ? 2 : 100;
    const DoubleDouble a = random_pair(3, i, exponents);
    const DoubleDouble b = random_pair(4, i, exponents);
    raise(add, exact.relative_error(a + b, mpfr_add, a, b));
    raise(add, exact.relative_error(a - b, mpfr_sub, a, b));
    raise(add_double, exact.relative_error(a + b.high, mpfr_add, a, b.high));
    raise(multiply, exact.relative_error(a * b, mpfr_mul, a, b));
    raise(multiply_double, exact.relative_error(a * b.high, mpfr_mul, a, b.high));
    raise(divide, exact.relative_error(a / b, mpfr_div, a, b));
    raise(divide_double, exact.relative_error(a / b.high, mpfr_div, a, b.high));
    raise(root, exact.relative_error(sqrt(abs(a)), square_root, abs(a), a));
  }
  EXPECT_LE(add, 3 * u * u / (1 - 4 * u));
  EXPECT_LE(add_double, 2 * u * u);
  EXPECT_LE(multiply, 5 * u * u);
  EXPECT_LE(multiply_double, 2 * u * u);
  EXPECT_LE(divide, 16 * u * u);
  EXPECT_LE(divide_double, 3.5 * u * u);
  EXPECT_LE(root, 3.125 * u * u);
  // The samples come near the bounds; otherwise the comparison itself is in doubt.
  for (const double worst :
       {add, add_double, multiply, multiply_double, divide, divide_double, root}) {
    EXPECT_GE(worst, u * u);
  }
}

// Sums whose high parts cancel: the accurate sum keeps its bound where the short one would not.
TEST(DoubleDouble, CancellingSums) {
  Exact exact;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const DoubleDouble a = random_pair(5, i, 0);
    const int bit = static_cast<int>(i % 106);
    const DoubleDouble b = -(a + std::ldexp(random_double(6, i, 0), -bit));
    ASSERT_LE(exact.relative_error(a + b, mpfr_add, a, b), 3 * u * u / (1 - 4 * u)) << i;
  }
}

TEST(DoubleDouble, SignsOrderAndScale) {
  const DoubleDouble a = {1.0, -0x1p-60};
  EXPECT_EQ(-a, DoubleDouble(-1.0, 0x1p-60));
  EXPECT_EQ(abs(-a), a);
  EXPECT_TRUE(a < DoubleDouble(1.0));
  EXPECT_FALSE(DoubleDouble(1.0) < a);
  EXPECT_TRUE(-a < a);
  EXPECT_FALSE(DoubleDouble(std::numeric_limits<double>::quiet_NaN()) < a);
  EXPECT_EQ(scale_by_power_of_two(a, -3), DoubleDouble(0.125, -0x1p-63));
  EXPECT_EQ(sqrt(DoubleDouble(0.0)), DoubleDouble(0.0));
  EXPECT_EQ(sqrt(DoubleDouble(2.25)), DoubleDouble(1.5));
  EXPECT_TRUE(std::isnan(sqrt(DoubleDouble(-1.0)).high));
}

}  // namespace
}  // namespace kvsim
