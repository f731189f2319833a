// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// More terms than an ExactAccumulator takes before it moves its carries up (2^29).

#include <gmp.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"

namespace kvsim::softfloat {
namespace {

/// count × value + rest, rounded toward zero by GMP's conversion to double; |value| ≥ 1.
double expected(std::uint64_t count, double value, double rest) {
  mpz_t total, term;
  mpz_inits(total, term, static_cast<mpz_ptr>(nullptr));
  mpz_set_d(total, value * 0x1p60);
  mpz_mul_ui(total, total, count);
  mpz_set_d(term, rest * 0x1p60);
  mpz_add(total, total, term);
  const double result = mpz_get_d(total) * 0x1p-60;
  mpz_clears(total, term, static_cast<mpz_ptr>(nullptr));
  return result;
}

TEST(ExactSum, CarriesSurviveMoreTermsThanALimbHoldsAdditions) {
  constexpr std::uint64_t count = (std::uint64_t{1} << 29) + 12345;
  for (const double value : {0x1.fffffffffffffp+0, -0x1.fffffffffffffp+63}) {
    ExactAccumulator sum;
    for (std::uint64_t i = 0; i < count; ++i) sum.add(value);
    sum.add(0x1.8p-7);
    const Rounded rounded = sum.round(binary64, {.rounding = Rounding::toward_zero});
    EXPECT_EQ(std::bit_cast<double>(rounded.bits), expected(count, value, 0x1.8p-7));
  }
}

}  // namespace
}  // namespace kvsim::softfloat
