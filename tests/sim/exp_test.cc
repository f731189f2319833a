// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/exp.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/exp_constants.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "tests/sim/exp_oracle.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Overflow;
using softfloat::Rounding;
using softfloat::Subnormals;
using softfloat::Tininess;

// A number of MPFR with a precision beyond every figure here.
class Real {
 public:
  Real() { mpfr_init2(value_, 700); }
  ~Real() { mpfr_clear(value_); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  mpfr_ptr get() { return value_; }
  void set(DoubleDouble x) {
    mpfr_set_d(value_, x.high, MPFR_RNDN);
    mpfr_add_d(value_, value_, x.low, MPFR_RNDN);
  }
  // The nearest double-double, taken off this number.
  DoubleDouble take() {
    const double high = mpfr_get_d(value_, MPFR_RNDN);
    mpfr_sub_d(value_, value_, high, MPFR_RNDN);
    return {high, mpfr_get_d(value_, MPFR_RNDN)};
  }

 private:
  mpfr_t value_;
};

TEST(ExpConstants, EqualMpfr) {
  Real x;
  for (std::size_t i = 0; i < 64; ++i) {
    mpfr_set_ui(x.get(), i, MPFR_RNDN);
    mpfr_div_ui(x.get(), x.get(), 64, MPFR_RNDN);
    mpfr_exp2(x.get(), x.get(), MPFR_RNDN);
    EXPECT_EQ(exp_constants::powers[i], x.take()) << i;
  }
  mpfr_const_log2(x.get(), MPFR_RNDN);
  EXPECT_EQ(exp_constants::ln2, x.take());
  mpfr_const_log2(x.get(), MPFR_RNDN);
  mpfr_ui_div(x.get(), 64, x.get(), MPFR_RNDN);
  EXPECT_EQ(exp_constants::inverse_step, mpfr_get_d(x.get(), MPFR_RNDN));
  mpfr_const_log2(x.get(), MPFR_RNDN);
  mpfr_div_ui(x.get(), x.get(), 64, MPFR_RNDN);
  for (const double part : {exp_constants::step_high, exp_constants::step_middle}) {
    const double scaled = std::ldexp(part, 36 - 1 - std::ilogb(part));
    EXPECT_EQ(scaled, std::floor(scaled));  // 36 bits
    mpfr_sub_d(x.get(), x.get(), part, MPFR_RNDN);
  }
  EXPECT_EQ(exp_constants::step_low, mpfr_get_d(x.get(), MPFR_RNDN));
  double factorial = 2;
  for (int n = 3; n <= 12; ++n) {
    factorial *= n;
    mpfr_set_d(x.get(), factorial, MPFR_RNDN);
    mpfr_ui_div(x.get(), 1, x.get(), MPFR_RNDN);
    const DoubleDouble expected = x.take();
    const auto i = static_cast<std::size_t>(n);
    if (n <= 5) {
      EXPECT_EQ(exp_constants::inverse_factorials[i - 3], expected) << n;
    } else {
      EXPECT_EQ(exp_constants::small_inverse_factorials[i - 6], expected.high) << n;
    }
  }
}

double uniform_between(double low, double high, std::uint64_t stream, std::uint64_t index) {
  const double unit = static_cast<double>(philox_bits(1, stream, index) >> 11) * 0x1p-53;
  return low + (high - low) * unit;
}

// log2 of the largest relative error of `function` against `oracle` on double-doubles whose high
// parts are uniform in [low, high], or spread over the exponents down to 2^−70 for every other one.
template <class Function, class MpfrFunction>
double worst_error_log2(Function function, MpfrFunction oracle, double low, double high,
                        std::uint64_t count) {
  Real x, exact, got;
  mpfr_t worst;
  mpfr_init2(worst, 64);
  mpfr_set_zero(worst, 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    double head = uniform_between(low, high, 2, i);
    if (i % 2 == 1) head = std::ldexp(head, -static_cast<int>(philox_bits(1, 3, i) % 80));
    const double tail = head * 0x1p-53 * uniform_between(-1, 1, 4, i);
    const DoubleDouble argument = two_sum(head, i % 4 < 2 ? tail : 0.0);
    x.set(argument);
    oracle(exact.get(), x.get());
    got.set(function(argument));
    mpfr_sub(got.get(), got.get(), exact.get(), MPFR_RNDN);
    mpfr_div(got.get(), got.get(), exact.get(), MPFR_RNDN);
    mpfr_abs(got.get(), got.get(), MPFR_RNDN);
    mpfr_max(worst, worst, got.get(), MPFR_RNDU);
  }
  mpfr_log2(worst, worst, MPFR_RNDN);
  const double result = mpfr_get_d(worst, MPFR_RNDN);
  mpfr_clear(worst);
  return result;
}

TEST(ExpReference, ErrorAgainstMpfr) {
  const auto oracle = [](mpfr_ptr to, mpfr_srcptr x) {
    mpfr_set_prec(to, 200);
    mpfr_exp(to, x, MPFR_RNDN);
  };
  const double worst = worst_error_log2(exp_reference, oracle, -634, 709.7, 250'000);
  RecordProperty("worst_error_log2", std::to_string(worst));
  EXPECT_LE(worst, -102);
  EXPECT_GE(worst, -107);  // otherwise the comparison itself is in doubt
}

// exp_correctly_rounded relies on this bound.
TEST(ExpReference, QuickErrorAgainstMpfr) {
  Real exact, got;
  double worst = 0;
  for (std::uint64_t i = 0; i < 300'000; ++i) {
    double x = static_cast<float>(uniform_between(-104, 104, 10, i));
    if (i % 2 == 1) x = std::ldexp(x, -static_cast<int>(i % 40));
    mpfr_set_prec(exact.get(), 100);
    mpfr_set_d(exact.get(), x, MPFR_RNDN);
    mpfr_exp(exact.get(), exact.get(), MPFR_RNDN);
    const ScaledDoubleDouble quick = exp_quick(x);
    got.set(scale_by_power_of_two(quick.value, quick.exponent));
    mpfr_sub(got.get(), got.get(), exact.get(), MPFR_RNDN);
    mpfr_div(got.get(), got.get(), exact.get(), MPFR_RNDN);
    worst = std::fmax(worst, std::fabs(mpfr_get_d(got.get(), MPFR_RNDA)));
  }
  RecordProperty("worst_error_log2", std::to_string(std::log2(worst)));
  EXPECT_LE(worst, 0x1p-58);
  EXPECT_GE(worst, 0x1p-62);
}

TEST(ExpReference, PowersOfTwoAgainstMpfr) {
  const auto oracle = [](mpfr_ptr to, mpfr_srcptr x) {
    mpfr_set_prec(to, 200);
    mpfr_exp2(to, x, MPFR_RNDN);
  };
  const double worst = worst_error_log2(exp2_reference, oracle, -915, 1023.9, 100'000);
  RecordProperty("worst_error_log2", std::to_string(worst));
  EXPECT_LE(worst, -102);
  EXPECT_GE(worst, -107);
}

TEST(ExpReference, EndsOfTheRange) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exp_reference(0.0), DoubleDouble(1.0));
  EXPECT_EQ(exp_reference(-0.0), DoubleDouble(1.0));
  EXPECT_EQ(exp_reference(infinity), DoubleDouble(infinity));
  EXPECT_EQ(exp_reference(709.79), DoubleDouble(infinity));
  EXPECT_EQ(exp_reference(-infinity), DoubleDouble(0.0));
  EXPECT_EQ(exp_reference(-745.2), DoubleDouble(0.0));
  EXPECT_EQ(exp_reference(-745.1), DoubleDouble(0x1p-1074));
  EXPECT_TRUE(std::isnan(exp_reference(std::numeric_limits<double>::quiet_NaN()).high));
  EXPECT_EQ(exp2_reference(3.0), DoubleDouble(8.0));
  EXPECT_EQ(exp2_reference(-1074.0), DoubleDouble(0x1p-1074));
  EXPECT_EQ(exp2_reference(1024.0), DoubleDouble(infinity));
  EXPECT_EQ(exp2_reference(-infinity), DoubleDouble(0.0));
}

// Every rounding, and each policy at least once.
std::vector<Mode> all_modes() {
  return {
      {},
      {.rounding = Rounding::ties_to_away},
      {.rounding = Rounding::toward_zero},
      {.rounding = Rounding::toward_positive},
      {.rounding = Rounding::toward_negative},
      {.rounding = Rounding::to_odd},
      {.rounding = Rounding::stochastic, .random = 0},
      {.rounding = Rounding::stochastic, .random = 0x9e3779b9},
      {.rounding = Rounding::stochastic, .random = 0xffffffff},
      {.overflow = Overflow::saturate, .tininess = Tininess::before_rounding},
      {.overflow = Overflow::nan, .subnormals = Subnormals::flush_results},
      {.rounding = Rounding::toward_zero, .overflow = Overflow::infinity},
      {.rounding = Rounding::toward_positive, .subnormals = Subnormals::flush_both},
  };
}

void check_rounded(const Format& format, Bits x, const std::vector<Mode>& modes) {
  const oracle::Operand operand = oracle::decode(format, x);
  const auto exact = oracle::exact_exp(operand, format.precision + 40);
  const auto flushed =
      operand.subnormal ? oracle::exact_exp(oracle::decode(format, x, true), 60) : exact;
  for (const Mode& mode : modes) {
    const auto expected =
        oracle::round(oracle::flushes_inputs(mode) ? flushed : exact, format, mode);
    const auto got = exp_correctly_rounded(format, x, mode);
    ASSERT_EQ(got.bits, expected.bits)
        << std::hex << "exp of 0x" << x << " rounding " << static_cast<int>(mode.rounding);
    ASSERT_EQ(got.flags, expected.flags)
        << std::hex << "flags of exp of 0x" << x << " rounding " << static_cast<int>(mode.rounding);
  }
}

TEST(ExpCorrectlyRounded, EveryCodeOfFormatsUpTo16Bits) {
  const std::vector<Mode> modes = all_modes();
  for (const auto& row : softfloat::formats()) {
    if (row.format.width() > 16) continue;
    SCOPED_TRACE(row.name);
    for (Bits x = 0; x <= row.format.code_mask() && !HasFatalFailure(); ++x) {
      check_rounded(row.format, x, modes);
    }
  }
}

TEST(ExpCorrectlyRounded, EveryFewCodesOfWiderFormats) {
  const std::vector<Mode> modes = all_modes();
  for (Bits x = 0; x <= softfloat::tf32.code_mask() && !HasFatalFailure(); x += 61) {
    check_rounded(softfloat::tf32, x, modes);
  }
  for (Bits x = 0; x <= softfloat::e8m13.code_mask() && !HasFatalFailure(); x += 251) {
    check_rounded(softfloat::e8m13, x, modes);
  }
  for (Bits x = 0; x <= 0xffffffff && !HasFatalFailure(); x += 4099) {
    check_rounded(softfloat::binary32, x, modes);
  }
}

TEST(ExpCorrectlyRounded, Binary64) {
  const std::vector<Mode> modes = all_modes();
  std::vector<double> arguments = {
      0.0, -0.0, 5e-324, -5e-324, 0x1p-1022, 709.782712893384, 709.7827128933841,
      -708.3964185322641, -708.39641853226408, -745.13321910194122, -745.1332191019411,
      -745.13321910194123, 1e300, -1e300, std::numeric_limits<double>::infinity(),
      -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
      std::numeric_limits<double>::signaling_NaN(),
      // The hardest argument of Lefèvre and Muller above 2^−30; beside the halfway point 1 + 2^−53;
      // 2^−158 below 1 + 2^−52; 2^−104 below the halfway point 1 + 5·2^−53.
      7.5417527749959590085206221e-10, 0x1p-53, -0x1p-54, 0x1p-54, 0x1.fffffffffffffp-54,
      0x1.fffffffffffffp-53, 0x5p-53 - 0x1p-102};
  for (int e = -110; e < 10; ++e) {
    arguments.push_back(std::ldexp(1.0, e));
    arguments.push_back(-std::ldexp(1.0, e));
  }
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    arguments.push_back(uniform_between(-750, 712, 5, i));
    const double small = uniform_between(-1, 1, 6, i);
    arguments.push_back(std::ldexp(small, -static_cast<int>(philox_bits(1, 7, i) % 120)));
  }
  for (const double x : arguments) {
    check_rounded(softfloat::binary64, std::bit_cast<std::uint64_t>(x), modes);
    if (HasFatalFailure()) return;
  }
}

// The arguments of binary32 with |x| > 2^−13 whose exponentials lie closest to a boundary: within
// 2^−25 of half a unit in the last place. Found by a sweep over all of them.
TEST(ExpCorrectlyRounded, HardestBinary32) {
  const std::vector<Mode> modes = all_modes();
  for (const Bits x :
       std::array<Bits, 16>{0x3ab13d4f, 0xc16912cd, 0xbb32cf64, 0xc236bd8c, 0xbbf0edf1, 0xbed67f95,
                            0xbae0e25c, 0x3b730a7d, 0x3d1a274e, 0xbecbb365, 0x40315b33, 0x42a28a1b,
                            0x4001b249, 0x4195bc36, 0x41b7ee9a, 0x4288942b}) {
    check_rounded(softfloat::binary32, x, modes);
    if (HasFatalFailure()) return;
  }
}

TEST(ExpWide, TopBitsEqualMpfr) {
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    double x = uniform_between(-1023, 1023, 8, i);
    if (i % 2 == 1) x = std::ldexp(x, -static_cast<int>(philox_bits(1, 9, i) % 108));
    const auto operand = oracle::decode(softfloat::binary64, std::bit_cast<std::uint64_t>(x));
    const oracle::Exact expected = oracle::exact_exp(operand, 120);
    const softfloat::Exact got = exp_wide(x);
    EXPECT_EQ(got.exponent, expected.exponent + 119) << x;
    EXPECT_TRUE(got.significand >> (softfloat::Exact::top - 119) == expected.significand) << x;
    EXPECT_EQ(got.significand & 1, 1U) << x;
  }
}

}  // namespace
}  // namespace kvsim
