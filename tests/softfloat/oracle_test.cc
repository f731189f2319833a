// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Checks the oracle itself: hand-made values, and the host's binary32 and binary64 arithmetic with
/// its flags in the four directions that hardware knows. Nothing of softfloat's arithmetic is used.

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>

#include "softfloat/formats.h"
#include "tests/softfloat/integer_oracle.h"
#include "tests/softfloat/operands.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

Mode with(Rounding rounding, Overflow overflow = Overflow::automatic) {
  Mode mode;
  mode.rounding = rounding;
  mode.overflow = overflow;
  return mode;
}

Exact value(double x) {
  Oracle oracle;
  return oracle.compute(Op::convert, binary64, binary64, std::bit_cast<Bits>(x));
}

constexpr Flags kOverflow{false, false, true, false, true};
constexpr Flags kUnderflow{false, false, false, true, true};
constexpr Flags kInexact{false, false, false, false, true};
constexpr Flags kInvalid{true, false, false, false, false};

TEST(Oracle, RoundsTheSevenWays) {
  // 1 + 2^-11 lies halfway between the binary16 numbers 1 and 1 + 2^-10.
  const Exact tie = value(1.00048828125), negative = value(-1.00048828125);
  EXPECT_EQ(round(tie, binary16, with(Rounding::ties_to_even)), (Rounded{0x3c00, kInexact}));
  EXPECT_EQ(round(tie, binary16, with(Rounding::ties_to_away)), (Rounded{0x3c01, kInexact}));
  EXPECT_EQ(round(tie, binary16, with(Rounding::toward_zero)), (Rounded{0x3c00, kInexact}));
  EXPECT_EQ(round(tie, binary16, with(Rounding::toward_positive)), (Rounded{0x3c01, kInexact}));
  EXPECT_EQ(round(tie, binary16, with(Rounding::toward_negative)), (Rounded{0x3c00, kInexact}));
  EXPECT_EQ(round(tie, binary16, with(Rounding::to_odd)), (Rounded{0x3c01, kInexact}));
  EXPECT_EQ(round(negative, binary16, with(Rounding::toward_positive)),
            (Rounded{0xbc00, kInexact}));
  EXPECT_EQ(round(negative, binary16, with(Rounding::toward_negative)),
            (Rounded{0xbc01, kInexact}));
  Mode stochastic = with(Rounding::stochastic);
  stochastic.random = 0x7fffffff;
  EXPECT_EQ(round(tie, binary16, stochastic).bits, 0x3c00U);
  stochastic.random = 0x80000000;
  EXPECT_EQ(round(tie, binary16, stochastic).bits, 0x3c01U);
}

TEST(Oracle, OverflowsAsThePolicySays) {
  const auto bits = [](double x, const Format& f, Rounding rounding, Overflow overflow) {
    const Rounded r = round(value(x), f, with(rounding, overflow));
    EXPECT_EQ(r.flags, kOverflow);
    return r.bits;
  };
  constexpr auto even = Rounding::ties_to_even, zero = Rounding::toward_zero;
  EXPECT_EQ(bits(65520, binary16, even, Overflow::automatic), 0x7c00U);
  EXPECT_EQ(bits(-65536, binary16, zero, Overflow::automatic), 0xfbffU);
  EXPECT_EQ(bits(65536, binary16, Rounding::to_odd, Overflow::automatic), 0x7bffU);
  EXPECT_EQ(bits(65536, binary16, zero, Overflow::infinity), 0x7c00U);
  EXPECT_EQ(bits(65520, binary16, even, Overflow::saturate), 0x7bffU);
  EXPECT_EQ(bits(65520, binary16, even, Overflow::nan), 0x7e00U);
  EXPECT_EQ(bits(465, e4m3, even, Overflow::automatic), 0x7fU);
  EXPECT_EQ(bits(-465, e4m3, even, Overflow::saturate), 0xfeU);
  EXPECT_EQ(bits(-1000, e4m3fnuz, even, Overflow::automatic), 0x80U);
  EXPECT_EQ(bits(-7, e2m1, even, Overflow::automatic), 0xfU);
  EXPECT_EQ(bits(0x1p128, e8m0, even, Overflow::automatic), 0xffU);
  EXPECT_EQ(bits(INFINITY, e4m3, zero, Overflow::automatic), 0x7fU);
  EXPECT_EQ(bits(-INFINITY, e3m2, zero, Overflow::automatic), 0x3fU);
  EXPECT_EQ(round(value(464), e4m3, {}), (Rounded{0x7e, kInexact}));  // a tie, and 448 is even
}

TEST(Oracle, UnderflowsBeforeOrAfterRounding) {
  // Just below 2^-14: rounds to the smallest normal number, so it is tiny only before rounding.
  const Exact nearly = value(0x1.fffp-15);
  EXPECT_EQ(round(nearly, binary16, {}), (Rounded{0x0400, kInexact}));
  Mode mode;
  mode.tininess = Tininess::before_rounding;
  EXPECT_EQ(round(nearly, binary16, mode), (Rounded{0x0400, kUnderflow}));
  mode.subnormals = Subnormals::flush_results;
  EXPECT_EQ(round(nearly, binary16, mode), (Rounded{0x0000, kUnderflow}));
  EXPECT_EQ(round(value(-0x1p-24), binary16, {}), (Rounded{0x8001, {}}));
  EXPECT_EQ(round(value(-0x1p-24), binary16, mode), (Rounded{0x8000, kUnderflow}));
  EXPECT_EQ(round(value(0x1p-25), binary16, {}), (Rounded{0x0000, kUnderflow}));
  EXPECT_EQ(round(value(-0x1p-30), e4m3fnuz, {}), (Rounded{0x00, kUnderflow}));
}

TEST(Oracle, KeepsToTheRulesOfE8m0) {
  EXPECT_EQ(round(value(1), e8m0, {}), (Rounded{127, {}}));
  EXPECT_EQ(round(value(1.5), e8m0, {}), (Rounded{128, kInexact}));  // the larger, clause 4.3.1
  EXPECT_EQ(round(value(1.5), e8m0, with(Rounding::to_odd)), (Rounded{127, kInexact}));
  EXPECT_EQ(round(value(0.0), e8m0, {}), (Rounded{0, kUnderflow}));
  EXPECT_EQ(round(value(-0.0), e8m0, {}), (Rounded{0, kUnderflow}));
  EXPECT_EQ(round(value(0x1p-128), e8m0, {}), (Rounded{0, kUnderflow}));
  EXPECT_EQ(round(value(0x1.8p-128), e8m0, {}), (Rounded{0, kInexact}));
  EXPECT_EQ(round(value(-1), e8m0, {}), (Rounded{0xff, kInvalid}));
  EXPECT_EQ(round(value(NAN), e8m0, {}), (Rounded{0xff, {}}));
}

TEST(Oracle, KnowsSpecialOperands) {
  Oracle oracle;
  const auto result = [&](Op op, Bits a, Bits b, Bits c = 0, Rounding rounding = {}) {
    return expected(oracle, op, binary16, binary16, a, b, c, with(rounding));
  };
  const Rounded nan{0x7e00, {}}, invalid{0x7e00, kInvalid};
  EXPECT_EQ(result(Op::fma, 0, 0x7c00, 0x7e00), invalid);   // 0 × infinity + quiet NaN
  EXPECT_EQ(result(Op::fma, 0x3c00, 0x7c00, 0xfe01), nan);  // 1 × infinity + quiet NaN
  EXPECT_EQ(result(Op::add, 0x7c01, 0x3c00), invalid);      // signaling NaN
  EXPECT_EQ(result(Op::sub, 0x7c00, 0x7c00), invalid);
  EXPECT_EQ(result(Op::sqrt, 0xbc00, 0), invalid);
  EXPECT_EQ(result(Op::sqrt, 0x8000, 0), (Rounded{0x8000, {}}));
  EXPECT_EQ(result(Op::div, 0xbc00, 0).bits, 0xfc00U);
  EXPECT_TRUE(result(Op::div, 0xbc00, 0).flags.division_by_zero);
  EXPECT_EQ(result(Op::sub, 0x3c00, 0x3c00).bits, 0x0000U);
  EXPECT_EQ(result(Op::sub, 0x3c00, 0x3c00, 0, Rounding::toward_negative).bits, 0x8000U);
  EXPECT_EQ(result(Op::add, 0x8000, 0x8000).bits, 0x8000U);
  EXPECT_EQ(result(Op::add, 0x8000, 0x0000).bits, 0x0000U);
  EXPECT_EQ(result(Op::fma, 0x8000, 0x3c00, 0x8000).bits, 0x8000U);
}

template <class Float>
Float host(Op op, Float a, Float b, Float c) {
  const volatile Float x = a, y = b, z = c;  // computed at run time, in the current direction
  volatile Float r = 0;
  switch (op) {
    case Op::add:
      r = x + y;
      break;
    case Op::sub:
      r = x - y;
      break;
    case Op::mul:
      r = x * y;
      break;
    case Op::div:
      r = x / y;
      break;
    case Op::sqrt:
      r = std::sqrt(x);
      break;
    case Op::fma:
      r = std::fma(x, y, z);
      break;
    default:
      break;
  }
  return r;
}

/// Values and flags of the host against the oracle. x86 judges tininess after rounding, other CPUs
/// may not: there underflow is compared only where both kinds of tininess agree.
template <class Float, class Word>
void compare_with_host(const Format& f, Op op, std::uint64_t cases) {
  constexpr std::pair<int, Rounding> kDirections[] = {{FE_TONEAREST, Rounding::ties_to_even},
                                                      {FE_TOWARDZERO, Rounding::toward_zero},
                                                      {FE_UPWARD, Rounding::toward_positive},
                                                      {FE_DOWNWARD, Rounding::toward_negative}};
  const RandomOperands random(f);
  Oracle oracle;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const Bits a = random(3 * i), b = random(3 * i + 1);
    const Bits c = i % 2 == 0 ? random.near_cancellation(a, b, i) : random(3 * i + 2);
    const Exact exact = oracle.compute(op, f, f, a, b, c);
    const auto operand = [](Bits bits) { return std::bit_cast<Float>(static_cast<Word>(bits)); };
    for (const auto& [direction, rounding] : kDirections) {
      std::fesetround(direction);
      std::feclearexcept(FE_ALL_EXCEPT);
      const Float got = host(op, operand(a), operand(b), operand(c));
      const int raised = std::fetestexcept(FE_ALL_EXCEPT);
      std::fesetround(FE_TONEAREST);
      Mode mode = with(rounding);
      const Rounded want = round(exact, f, mode);
      mode.tininess = Tininess::before_rounding;
      const bool clear = round(exact, f, mode) == want;
      const bool same_value =
          std::isnan(got) ? want.bits == limits(f).nan : std::bit_cast<Word>(got) == want.bits;
      const Flags flags{
          (raised & FE_INVALID) != 0, (raised & FE_DIVBYZERO) != 0, (raised & FE_OVERFLOW) != 0,
          clear ? (raised & FE_UNDERFLOW) != 0 : want.flags.underflow, (raised & FE_INEXACT) != 0};
      // Whether 0 × infinity + quiet NaN raises invalid is the implementation's choice.
      const bool free_choice = op == Op::fma && want.bits == limits(f).nan;
      if (!same_value || (!free_choice && !(flags == want.flags))) {
        if (wrong++ == 0) {
          ADD_FAILURE() << name(op) << " " << describe(f, a) << " " << describe(f, b) << " "
                        << describe(f, c) << " direction " << direction << " host "
                        << describe(f, std::bit_cast<Word>(got)) << " oracle "
                        << describe(f, want.bits) << " raised " << raised;
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Oracle, AgreesWithTheHost) {
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::sqrt, Op::fma}) {
    compare_with_host<float, std::uint32_t>(binary32, op, 50'000);
    compare_with_host<double, std::uint64_t>(binary64, op, 50'000);
  }
}

TEST(Oracle, IntegersAgreeWithMpfr) {
  Oracle oracle;
  for (const Format& f : {binary16, bfloat16, e4m3, e5m2, e4m3fnuz, e5m2fnuz}) {
    const RandomOperands random(f);
    const std::vector<Operand> table = decode_all(f);
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      const Bits a = random(3 * i), b = random(3 * i + 1);
      const Bits c = i % 4 == 0 ? random.near_cancellation(a, b, i) : random(3 * i + 2);
      const Exact slow = oracle.compute(Op::fma, f, f, a, b, c);
      const Exact fast = integer_fma(table[a], table[b], table[c]);
      for (const Mode& mode : rounding_modes()) {
        ASSERT_EQ(round(fast, f, mode), round(slow, f, mode))
            << describe(f, a) << " " << describe(f, b) << " " << describe(f, c);
      }
    }
  }
}

}  // namespace
}  // namespace kvsim::oracle
