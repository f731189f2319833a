// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>
#include <mpfr.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "sim/elementary.h"
#include "sim/philox.h"
#include "tests/sim/elementary_oracle.h"

namespace kvsim {
namespace {

std::uint32_t code(float x) {
  return std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x);
}

// A million arguments: 3,906 in each of the 256 exponents, signs and fractions at random.
void sweep(const oracle::ElementaryFunction& row, float largest = HUGE_VALF) {
  oracle::Binary32Range mpfr;
  for (std::uint64_t i = 0; i < 1'000'000 && !testing::Test::HasFatalFailure(); ++i) {
    const auto random = static_cast<std::uint32_t>(philox_bits(6, 1, i));
    const std::uint32_t exponent = static_cast<std::uint32_t>(i % 256) << 23;
    const float x = std::bit_cast<float>((random & 0x807fffffU) | exponent);
    if (x == 0 || (std::fabs(x) > largest && i % 4096 > 255)) continue;
    ASSERT_EQ(code(row.function(x)), mpfr.round(row, x))
        << row.name << " of " << std::hexfloat << x;
  }
}

TEST(ElementarySweep, Exp) { sweep({"exp", exp_f32, mpfr_exp}); }
TEST(ElementarySweep, Exp2) { sweep({"exp2", exp2_f32, mpfr_exp2}); }
TEST(ElementarySweep, Log) { sweep({"log", log_f32, mpfr_log}); }
TEST(ElementarySweep, Log2) { sweep({"log2", log2_f32, mpfr_log2}); }
TEST(ElementarySweep, Tanh) { sweep({"tanh", tanh_f32, mpfr_tanh}); }
TEST(ElementarySweep, Erf) { sweep({"erf", erf_f32, mpfr_erf}); }
TEST(ElementarySweep, ReciprocalSquareRoot) { sweep({"rsqrt", rsqrt_f32, mpfr_rec_sqrt}); }
// Beyond 2^22 every argument takes the long way: one in 16 of them.
TEST(ElementarySweep, Sin) { sweep({"sin", sin_f32, mpfr_sin}, 0x1p22F); }
TEST(ElementarySweep, Cos) { sweep({"cos", cos_f32, mpfr_cos}, 0x1p22F); }

// Every 1021st positive argument where each function does something: exponents −14 to 8.
TEST(ElementarySweep, DenseAroundOne) {
  constexpr auto rows = std::to_array<oracle::ElementaryFunction>({{"exp", exp_f32, mpfr_exp},
                                                                   {"tanh", tanh_f32, mpfr_tanh},
                                                                   {"erf", erf_f32, mpfr_erf},
                                                                   {"sin", sin_f32, mpfr_sin},
                                                                   {"cos", cos_f32, mpfr_cos}});
  oracle::Binary32Range mpfr;
  for (const auto& row : rows) {
    for (std::uint32_t bits = 0x38800000U; bits < 0x44000000U && !HasFatalFailure(); bits += 1021) {
      const float x = std::bit_cast<float>(bits);
      ASSERT_EQ(code(row.function(x)), mpfr.round(row, x))
          << row.name << " of " << std::hexfloat << x;
    }
  }
}

}  // namespace
}  // namespace kvsim
