// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Everything that does not round: classification, sign operations, neighbours, comparison, minimum
/// and maximum, and the way to host numbers. Against decoded values as doubles: pairs of every
/// format of at most 8 bits, codes of every format of at most 22 bits.

#include <gtest/gtest.h>

#include <cmath>

#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

double value(const Operand& o) {
  double magnitude = 0;
  if (o.kind == Kind::nan) return NAN;
  if (o.kind == Kind::infinite) magnitude = INFINITY;
  if (o.kind == Kind::finite)
    magnitude = std::ldexp(static_cast<double>(o.significand), o.exponent);
  return o.negative ? -magnitude : magnitude;
}

std::vector<Format> formats_up_to(int width) {
  std::vector<Format> list;
  for (const NamedFormat& row : formats()) {
    if (row.format.width() <= width) list.push_back(row.format);
  }
  return list;
}

TEST(Comparison, OrdersAllPairs) {
  for (const Format& f : formats_up_to(8)) {
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      for (Bits b = 0; b <= f.code_mask(); ++b) {
        const Operand x = decode(f, a), y = decode(f, b);
        const double u = value(x), v = value(y);
        const bool nan = std::isnan(u) || std::isnan(v), signaling = x.signaling || y.signaling;
        const Ordering want = nan      ? Ordering::unordered
                              : u < v  ? Ordering::less
                              : u == v ? Ordering::equal
                                       : Ordering::greater;
        Flags quiet, loud;
        quiet.invalid = signaling;
        loud.invalid = nan;
        const auto context = [&] { return describe(f, a) + " " + describe(f, b); };
        ASSERT_EQ(compare(f, a, b).ordering, want) << context();
        ASSERT_EQ(compare(f, a, b).flags, quiet) << context();
        ASSERT_EQ(compare_signaling(f, a, b).ordering, want) << context();
        ASSERT_EQ(compare_signaling(f, a, b).flags, loud) << context();

        // IEEE 754-2019 clause 9.6; −0 is less than +0.
        const bool a_first = u < v || (u == v && x.negative);
        const Bits smaller = a_first ? a : b, larger = a_first ? b : a;
        const Bits canonical = nan ? limits(f).nan : 0;
        const Bits number = std::isnan(u) ? (std::isnan(v) ? canonical : b) : a;
        ASSERT_EQ(minimum(f, a, b), (Rounded{nan ? canonical : smaller, quiet})) << context();
        ASSERT_EQ(maximum(f, a, b), (Rounded{nan ? canonical : larger, quiet})) << context();
        ASSERT_EQ(minimum_number(f, a, b), (Rounded{nan ? number : smaller, quiet})) << context();
        ASSERT_EQ(maximum_number(f, a, b), (Rounded{nan ? number : larger, quiet})) << context();
      }
    }
  }
}

TEST(Comparison, ClassifiesEveryCode) {
  for (const Format& f : formats_up_to(22)) {
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      const Operand o = decode(f, a);
      const bool finite = o.kind == Kind::zero || o.kind == Kind::finite;
      ASSERT_EQ(is_nan(f, a), o.kind == Kind::nan) << describe(f, a);
      ASSERT_EQ(is_signaling_nan(f, a), o.signaling) << describe(f, a);
      ASSERT_EQ(is_infinite(f, a), o.kind == Kind::infinite) << describe(f, a);
      ASSERT_EQ(is_zero(f, a), o.kind == Kind::zero) << describe(f, a);
      ASSERT_EQ(is_subnormal(f, a), o.subnormal) << describe(f, a);
      ASSERT_EQ(is_finite(f, a), finite) << describe(f, a);
      ASSERT_EQ(is_negative(f, a), o.negative) << describe(f, a);
    }
  }
}

TEST(Comparison, NegatesAndTakesMagnitudes) {
  for (const Format& f : formats_up_to(22)) {
    if (!f.has_sign) continue;
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      const Operand o = decode(f, a);
      if (o.kind == Kind::nan) continue;
      const double magnitude = std::fabs(value(o));
      const bool fnuz_zero = o.kind == Kind::zero && f.specials == Specials::nan_is_negative_zero;
      const Operand minus = decode(f, negate(f, a)), plus = decode(f, abs(f, a));
      ASSERT_EQ(value(minus), -value(o)) << describe(f, a);
      ASSERT_EQ(minus.negative, !o.negative && !fnuz_zero) << describe(f, a);
      ASSERT_EQ(value(plus), magnitude) << describe(f, a);
      ASSERT_FALSE(plus.negative) << describe(f, a);
    }
  }
}

/// The codes of a format's numbers in order; −0 before +0.
std::vector<Bits> in_order(const Format& f) {
  std::vector<std::pair<double, Bits>> numbers;
  for (Bits a = 0; a <= f.code_mask(); ++a) {
    const Operand o = decode(f, a);
    if (o.kind != Kind::nan && !(o.kind == Kind::zero && o.negative)) {
      numbers.emplace_back(value(o), a);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<Bits> codes;
  for (const auto& [number, code] : numbers) codes.push_back(code);
  return codes;
}

TEST(Comparison, FindsTheNeighboursOfEveryCode) {
  for (const Format& f : formats_up_to(22)) {
    if (!f.has_zero()) continue;
    const Bits minus_zero = limits(f).has_negative_zero ? limits(f).sign : 0;
    const std::vector<Bits> codes = in_order(f);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      // Clause 5.3.1: the neighbours of the smallest subnormals on the side of 0 are zeros of
      // their sign; the ends are their own neighbours.
      Bits up = codes[std::min(i + 1, codes.size() - 1)];
      const Bits down = codes[i == 0 ? 0 : i - 1];
      if (up == 0) up = minus_zero;
      ASSERT_EQ(next_up(f, codes[i]), (Rounded{up, {}})) << describe(f, codes[i]);
      ASSERT_EQ(next_down(f, codes[i]), (Rounded{down, {}})) << describe(f, codes[i]);
    }
    ASSERT_EQ(next_up(f, minus_zero), (Rounded{1, {}}));
    ASSERT_EQ(next_down(f, minus_zero), (Rounded{limits(f).sign | 1, {}}));
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      const Operand o = decode(f, a);
      if (o.kind != Kind::nan) continue;
      Flags flags;
      flags.invalid = o.signaling;
      ASSERT_EQ(next_up(f, a), (Rounded{limits(f).nan, flags})) << describe(f, a);
      ASSERT_EQ(next_down(f, a), (Rounded{limits(f).nan, flags})) << describe(f, a);
    }
  }
}

TEST(Comparison, ReachesHostNumbersExactly) {
  for (const Format& f : formats_up_to(22)) {
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      const double want = value(decode(f, a));
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(to_double(f, a)) && std::isnan(to_float(f, a))) << describe(f, a);
        continue;
      }
      ASSERT_EQ(from_double(to_double(f, a)), from_double(want)) << describe(f, a);
      ASSERT_EQ(from_float(to_float(f, a)), from_float(static_cast<float>(want))) << describe(f, a);
    }
  }
}

}  // namespace
}  // namespace kvsim::oracle
