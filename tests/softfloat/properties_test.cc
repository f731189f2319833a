// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Relations that hold without an oracle.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/operands.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

constexpr Format kFormats[] = {binary16, bfloat16, tf32, e8m13, binary32, binary64, e5m2};
constexpr std::uint64_t kCases = 20'000;

Mode with(Rounding rounding) {
  Mode mode;
  mode.rounding = rounding;
  return mode;
}

/// Calls body(format, a, b, c) with random operands of each format.
template <class Body>
void for_random_operands(Body body) {
  for (const Format& f : kFormats) {
    const RandomOperands random(f);
    for (std::uint64_t i = 0; i < kCases; ++i) {
      body(f, random(3 * i), random(3 * i + 1), random(3 * i + 2));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Properties, OperandsCommute) {
  const std::vector<Mode> modes = rounding_modes();
  for_random_operands([&](const Format& f, Bits a, Bits b, Bits c) {
    for (const Mode& mode : modes) {
      ASSERT_EQ(add(f, a, b, mode), add(f, b, a, mode)) << describe(f, a) << describe(f, b);
      ASSERT_EQ(mul(f, a, b, mode), mul(f, b, a, mode)) << describe(f, a) << describe(f, b);
      ASSERT_EQ(fma(f, a, b, c, mode), fma(f, b, a, c, mode)) << describe(f, a) << describe(f, b);
    }
    ASSERT_EQ(minimum(f, a, b), minimum(f, b, a));
    ASSERT_EQ(maximum_number(f, a, b), maximum_number(f, b, a));
  });
}

/// −x; NaN stays as it is.
Bits mirrored(const Format& f, Bits x) {
  return decode(f, x).kind == Kind::nan ? x : x ^ limits(f).sign;
}

TEST(Properties, NegationMirrorsTheDirection) {
  constexpr std::pair<Rounding, Rounding> kMirrors[] = {
      {Rounding::ties_to_even, Rounding::ties_to_even},
      {Rounding::ties_to_away, Rounding::ties_to_away},
      {Rounding::toward_zero, Rounding::toward_zero},
      {Rounding::to_odd, Rounding::to_odd},
      {Rounding::toward_positive, Rounding::toward_negative}};
  for_random_operands([&](const Format& f, Bits a, Bits b, Bits c) {
    const Bits sign = limits(f).sign;
    for (const auto& [one, other] : kMirrors) {
      const auto expect_mirror = [&](const Rounded& x, const Rounded& y) {
        // An exact zero sum is +0 on both sides, but for toward negative.
        const bool zeros = (x.bits & ~sign) == 0 && (y.bits & ~sign) == 0;
        ASSERT_TRUE(zeros || mirrored(f, x.bits) == y.bits) << describe(f, a) << describe(f, b);
        ASSERT_EQ(x.flags, y.flags) << describe(f, a) << describe(f, b) << describe(f, c);
      };
      const Bits na = mirrored(f, a), nb = mirrored(f, b), nc = mirrored(f, c);
      expect_mirror(add(f, a, b, with(one)), add(f, na, nb, with(other)));
      expect_mirror(mul(f, a, b, with(one)), mul(f, na, b, with(other)));
      expect_mirror(div(f, a, b, with(one)), div(f, na, b, with(other)));
      expect_mirror(fma(f, a, b, c, with(one)), fma(f, na, b, nc, with(other)));
    }
    ASSERT_EQ(sub(f, a, b), add(f, a, mirrored(f, b)));
  });
}

TEST(Properties, FmaContainsProductAndSum) {
  for_random_operands([](const Format& f, Bits a, Bits b, Bits) {
    const Bits one = static_cast<Bits>(f.bias) << (f.precision - 1);
    ASSERT_EQ(fma(f, a, b, limits(f).sign), mul(f, a, b)) << describe(f, a) << describe(f, b);
    ASSERT_EQ(fma(f, a, one, b), add(f, a, b)) << describe(f, a) << describe(f, b);
    ASSERT_EQ(mul(f, a, one), convert(f, f, a)) << describe(f, a);
    ASSERT_EQ(div(f, a, one), convert(f, f, a)) << describe(f, a);
  });
}

TEST(Properties, DirectedResultsEncloseTheOthers) {
  for_random_operands([](const Format& f, Bits a, Bits b, Bits c) {
    const auto enclose = [&](auto operation) {
      const Rounded down = operation(with(Rounding::toward_negative));
      const Rounded up = operation(with(Rounding::toward_positive));
      if (decode(f, down.bits).kind == Kind::nan) return;
      if (!down.flags.inexact) {
        ASSERT_EQ(compare(f, down.bits, up.bits).ordering, Ordering::equal);
      } else {
        // The smallest subnormal's neighbour is the zero of its sign.
        ASSERT_EQ(compare(f, next_up(f, down.bits).bits, up.bits).ordering, Ordering::equal)
            << describe(f, a) << describe(f, b) << describe(f, c);
      }
      for (const auto rounding : {Rounding::ties_to_even, Rounding::ties_to_away,
                                  Rounding::toward_zero, Rounding::to_odd, Rounding::stochastic}) {
        Mode mode = with(rounding);
        mode.random = static_cast<std::uint32_t>(mix(a ^ b ^ c));
        const Bits result = operation(mode).bits;
        ASSERT_TRUE(compare(f, result, down.bits).ordering == Ordering::equal ||
                    compare(f, result, up.bits).ordering == Ordering::equal)
            << describe(f, a) << describe(f, b) << describe(f, c);
      }
    };
    enclose([&](const Mode& mode) { return add(f, a, b, mode); });
    enclose([&](const Mode& mode) { return mul(f, a, b, mode); });
    enclose([&](const Mode& mode) { return div(f, a, b, mode); });
    enclose([&](const Mode& mode) { return sqrt(f, a, mode); });
    enclose([&](const Mode& mode) { return fma(f, a, b, c, mode); });
  });
}

TEST(Properties, WideningIsExactAndNarrowingUndoesIt) {
  for (const NamedFormat& narrow : formats()) {
    const Format& f = narrow.format;
    if (f.width() > 22) continue;
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      const Operand operand = decode(f, a);
      if (operand.kind == Kind::nan) continue;
      const Rounded wide = convert(binary64, f, a);
      ASSERT_EQ(wide.flags, Flags{}) << narrow.name << describe(f, a);
      ASSERT_EQ(convert(f, binary64, wide.bits), (Rounded{a, {}})) << narrow.name << describe(f, a);
    }
  }
}

TEST(Properties, StochasticRoundingIsUnbiased) {
  // binary32 to binary16 discards 13 bits, to e4m3 20, both within the 32 that the random word
  // reaches: of 2^20 random words, evenly spread, exactly discarded/2^bits of them round away.
  constexpr int kLog2Words = 20;
  for (const Format& to : {binary16, e4m3}) {
    const int discarded = 24 - to.precision;
    int checked = 0;
    for (std::uint64_t i = 0; checked < 6; ++i) {
      const Bits significand = mix(i) & 0x7fffff;
      const Bits a = (Bits{127} << 23) | significand;  // in [1, 2)
      const Rounded down = convert(to, binary32, a, with(Rounding::toward_zero));
      if (!down.flags.inexact) continue;
      ++checked;
      std::uint64_t away = 0;
      for (std::uint64_t word = 0; word < (1U << kLog2Words); ++word) {
        Mode mode = with(Rounding::stochastic);
        mode.random = static_cast<std::uint32_t>(word << (32 - kLog2Words));
        const Bits bits = convert(to, binary32, a, mode).bits;
        ASSERT_TRUE(bits == down.bits || bits == down.bits + 1);
        away += bits - down.bits;
      }
      const Bits fraction = significand & ((Bits{1} << discarded) - 1);
      EXPECT_EQ(away, fraction << (kLog2Words - discarded)) << describe(binary32, a);
    }
  }
}

}  // namespace
}  // namespace kvsim::oracle
