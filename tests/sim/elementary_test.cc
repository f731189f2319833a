// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/elementary.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "sim/elementary_constants.h"
#include "sim/elementary_double.h"
#include "sim/elementary_wide.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/sim/elementary_oracle.h"

namespace kvsim {
namespace {

constexpr auto functions = std::to_array<oracle::ElementaryFunction>({
    {"exp", exp_f32, mpfr_exp},
    {"exp2", exp2_f32, mpfr_exp2},
    {"log", log_f32, mpfr_log},
    {"log2", log2_f32, mpfr_log2},
    {"tanh", tanh_f32, mpfr_tanh},
    {"erf", erf_f32, mpfr_erf},
    {"sin", sin_f32, mpfr_sin},
    {"cos", cos_f32, mpfr_cos},
    {"rsqrt", rsqrt_f32, mpfr_rec_sqrt},
});

std::uint32_t code(float x) {
  return std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x);
}

void check(oracle::Binary32Range& mpfr, const oracle::ElementaryFunction& row, float x) {
  // MPFR 4 gives −infinity for rec_sqrt(−0) only from 4.2 on; IEEE 754-2019 (9.2.1) asks for it.
  if (row.name == "rsqrt" && x == 0) return;
  ASSERT_EQ(code(row.function(x)), mpfr.round(row, x)) << row.name << " of " << std::hexfloat << x;
}

TEST(Elementary, EveryBinary16AndBfloat16Argument) {
  oracle::Binary32Range mpfr;
  for (const auto& row : functions) {
    for (softfloat::Bits bits = 0; bits < 0x10000 && !HasFatalFailure(); ++bits) {
      // Half the codes lie beyond 2^22, where sin and cos take their time: every 16th of those.
      const float wide = softfloat::to_float(softfloat::bfloat16, bits);
      if (std::fabs(wide) <= 0x1p22F || bits % 16 == 0) check(mpfr, row, wide);
      check(mpfr, row, softfloat::to_float(softfloat::binary16, bits));
    }
  }
}

TEST(Elementary, StratifiedBinary32Arguments) {
  oracle::Binary32Range mpfr;
  for (const auto& row : functions) {
    for (std::uint64_t i = 0; i < 6'000 && !HasFatalFailure(); ++i) {
      const auto bits = static_cast<std::uint32_t>(philox_bits(4, 1, i));
      check(mpfr, row, std::bit_cast<float>(bits));
      // Exponents from −8 to 7, where functions do something.
      const std::uint32_t near = (bits & 0x807fffffU) | ((119U + (bits >> 23) % 16U) << 23);
      check(mpfr, row, std::bit_cast<float>(near));
    }
  }
}

// Ends of the ranges, subnormals, and arguments beside midpoints.
TEST(Elementary, SpecialArguments) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  oracle::Binary32Range mpfr;
  for (const auto& row : functions) {
    for (const float magnitude : {0.0F,
                                  0x1p-149F,
                                  0x1p-126F,
                                  0x1p-25F,
                                  0x1p-24F,
                                  0x1.000002p-24F,
                                  0x1p-12F,
                                  0x1p-13F,
                                  1.0F,
                                  0x1.fffffep-1F,
                                  0x1.000002p0F,
                                  2.0F,
                                  3.9192059F,
                                  4.0F,
                                  9.01F,
                                  9.02F,
                                  88.72283F,
                                  88.72284F,
                                  103.97208F,
                                  103.97207F,
                                  126.0F,
                                  127.99999F,
                                  128.0F,
                                  149.0F,
                                  149.5F,
                                  150.0F,
                                  149.99999F,
                                  0x1p22F,
                                  0x1.000002p22F,
                                  0x1p100F,
                                  std::numeric_limits<float>::max(),
                                  infinity}) {
      check(mpfr, row, magnitude);
      check(mpfr, row, -magnitude);
    }
    check(mpfr, row, std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_EQ(rsqrt_f32(0.0F), infinity);
  EXPECT_EQ(rsqrt_f32(-0.0F), -infinity);
}

TEST(Elementary, PowersOfRopeBases) {
  oracle::Binary32Range mpfr;
  mpfr_t x, y;
  mpfr_inits2(24, x, y, static_cast<mpfr_ptr>(nullptr));
  for (const float base : {10000.0F, 500000.0F, 1e6F, 2.0F, 4097.0F, 0.3F}) {
    for (int i = -256; i <= 256; ++i) {
      const float exponent = static_cast<float>(i) / 128;
      mpfr_set_flt(x, base, MPFR_RNDN);
      mpfr_set_flt(y, exponent, MPFR_RNDN);
      mpfr_pow(y, x, y, MPFR_RNDN);
      ASSERT_EQ(pow_f32(base, exponent), mpfr_get_flt(y, MPFR_RNDN)) << base << "^" << exponent;
    }
  }
  mpfr_clears(x, y, static_cast<mpfr_ptr>(nullptr));
  // 4097² = 2^24 + 2^13 + 1 is a tie: only the exact square goes to the even neighbour.
  EXPECT_EQ(pow_f32(4097, 2), 16785408.0F);
  EXPECT_EQ(pow_f32(10000, 0.5F), 100.0F);
  EXPECT_TRUE(std::isnan(pow_f32(-1, 2)));
}

struct Approximation {
  std::string_view name;
  double (*function)(double);
  int (*mpfr)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  double error;
  double least, most;  // the range of the argument
};

constexpr auto approximations = std::to_array<Approximation>({
    {"exp2", elementary::exp2_double, mpfr_exp2, elementary::exp2_error, -152, 130},
    {"exp", elementary::exp_double, mpfr_exp, elementary::exp_error, -105, 90},
    {"log", elementary::log_double, mpfr_log, elementary::log_error, 0, 3},
    {"log2", elementary::log2_double, mpfr_log2, elementary::log_error, 0, 3},
    {"tanh", elementary::tanh_double, mpfr_tanh, elementary::tanh_error, -10, 10},
    {"erf", elementary::erf_double, mpfr_erf, elementary::erf_error, -4, 4},
    {"sin", elementary::sin_double, mpfr_sin, elementary::sin_error, -0x1p22, 0x1p22},
    {"cos", elementary::cos_double, mpfr_cos, elementary::sin_error, -0x1p22, 0x1p22},
});

// The decision about every rounding relies on these bounds. Arguments are floats, uniform in the
// range or spread over exponents, and multiples of π/2 rounded to float.
TEST(ElementaryDouble, ErrorsAgainstMpfr) {
  mpfr_t x, exact, got;
  mpfr_inits2(120, x, exact, got, static_cast<mpfr_ptr>(nullptr));
  for (const Approximation& row : approximations) {
    double worst = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const double unit = static_cast<double>(philox_bits(4, 2, i) >> 11) * 0x1p-53;
      double argument = row.least + (row.most - row.least) * unit;
      if (i % 3 == 1) argument = std::ldexp(argument, -static_cast<int>(i % 40));
      if (i % 3 == 2 && row.least < -1000) argument = std::floor(argument) * 0x1.921fb54442d18p0;
      argument = static_cast<double>(static_cast<float>(argument));
      if (std::fabs(argument) > row.most || argument < row.least) continue;
      mpfr_set_d(x, argument, MPFR_RNDN);
      row.mpfr(exact, x, MPFR_RNDN);
      if (mpfr_zero_p(exact)) {
        EXPECT_EQ(row.function(argument), 0) << row.name << " of " << argument;
        continue;
      }
      mpfr_set_d(got, row.function(argument), MPFR_RNDN);
      mpfr_sub(got, got, exact, MPFR_RNDN);
      mpfr_div(got, got, exact, MPFR_RNDN);
      worst = std::fmax(worst, std::fabs(mpfr_get_d(got, MPFR_RNDA)));
    }
    RecordProperty(std::string(row.name) + "_worst_error_log2", std::to_string(std::log2(worst)));
    EXPECT_LE(worst, row.error) << row.name << ": 2^" << std::log2(worst);
    EXPECT_GE(worst, row.error / 64) << row.name << ": a bound far from the error is a mistake";
  }
  mpfr_clears(x, exact, got, static_cast<mpfr_ptr>(nullptr));
}

// The last resort, which almost no argument of the tests above reaches.
TEST(ElementaryWide, EqualsMpfr) {
  using elementary::Function;
  constexpr std::array order{Function::exp,  Function::exp2, Function::log,
                             Function::log2, Function::tanh, Function::erf,
                             Function::sin,  Function::cos,  Function::reciprocal_square_root};
  oracle::Binary32Range mpfr;
  for (std::size_t f = 0; f < order.size(); ++f) {
    for (std::uint64_t i = 0; i < 200; ++i) {
      const auto bits = static_cast<std::uint32_t>(philox_bits(4, 3, i));
      const std::uint32_t near = (bits & 0x007fffffU) | ((119U + (bits >> 23) % 10U) << 23);
      const float x = std::bit_cast<float>(near);
      ASSERT_EQ(code(elementary::round_wide(order[f], x)), mpfr.round(functions[f], x))
          << functions[f].name << " of " << std::hexfloat << x;
    }
  }
}

TEST(ElementaryConstants, EqualMpfr) {
  mpfr_t x, y;
  mpfr_inits2(400, x, y, static_cast<mpfr_ptr>(nullptr));
  mpfr_const_pi(x, MPFR_RNDN);
  mpfr_div_ui(x, x, 2, MPFR_RNDN);
  EXPECT_EQ(std::floor(std::ldexp(elementary::half_pi_high, 30)),
            std::ldexp(elementary::half_pi_high, 30));
  mpfr_sub_d(x, x, elementary::half_pi_high, MPFR_RNDN);
  EXPECT_EQ(std::floor(std::ldexp(elementary::half_pi_middle, 64)),
            std::ldexp(elementary::half_pi_middle, 64));
  mpfr_sub_d(x, x, elementary::half_pi_middle, MPFR_RNDN);
  EXPECT_EQ(mpfr_get_d(x, MPFR_RNDN), elementary::half_pi_low);
  double factorial = 1;
  for (int n = 2; n <= 15; ++n) {
    factorial *= n;
    EXPECT_EQ(elementary::inverse_factorials[static_cast<std::size_t>(n) - 2], 1 / factorial) << n;
  }
  for (std::size_t i = 0; i < elementary::erf_taylor.size(); ++i) {
    mpfr_set_d(x, (static_cast<double>(i) + 2.5) / 4, MPFR_RNDN);
    mpfr_erf(y, x, MPFR_RNDN);
    EXPECT_EQ(elementary::erf_taylor[i][0], mpfr_get_d(y, MPFR_RNDN)) << i;
  }
  mpfr_clears(x, y, static_cast<mpfr_ptr>(nullptr));
}

}  // namespace
}  // namespace kvsim
