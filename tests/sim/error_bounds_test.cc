// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/error_bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "softfloat/formats.h"

// Expected values are written out by hand from the definitions: u = 2^−p, half a quantum
// 2^(emin − p), and the closed forms of the bounds. A bound may exceed its closed form by the
// factor that covers its own roundings, and by no more.
namespace kvsim {
namespace {

void expect_just_above(double bound, double closed_form) {
  EXPECT_GE(bound, closed_form);
  EXPECT_LE(bound, closed_form * (1 + 0x1p-30));
}

TEST(RoundingUnits, OfNamedFormats) {
  struct Row {
    const char* name;
    double unit_roundoff, half_quantum, largest_finite, smallest_normal;
    bool saturates;
  };
  for (const Row& row : {
           Row{"binary16", 0x1p-11, 0x1p-25, 65504.0, 0x1p-14, false},
           Row{"bfloat16", 0x1p-8, 0x1p-134, 0x1.fep127, 0x1p-126, false},
           Row{"tf32", 0x1p-11, 0x1p-137, 0x1.ffcp127, 0x1p-126, false},
           Row{"binary32", 0x1p-24, 0x1p-150, 0x1.fffffep127, 0x1p-126, false},
           // Half the smallest subnormal is no binary64 number: the next one above stands for it.
           Row{"binary64", 0x1p-53, 0x1p-1074, 0x1.fffffffffffffp1023, 0x1p-1022, false},
           Row{"e4m3", 0x1p-4, 0x1p-10, 448.0, 0x1p-6, false},
           Row{"e5m2", 0x1p-3, 0x1p-17, 57344.0, 0x1p-14, false},
           Row{"e4m3fnuz", 0x1p-4, 0x1p-11, 240.0, 0x1p-7, false},
           Row{"e2m1", 0x1p-2, 0.25, 6.0, 1.0, true},
           Row{"e3m2", 0x1p-3, 0x1p-5, 28.0, 0.25, true},
       }) {
    const RoundingUnits units(softfloat::find_format(row.name)->format);
    EXPECT_EQ(units.unit_roundoff, row.unit_roundoff) << row.name;
    EXPECT_EQ(units.half_quantum, row.half_quantum) << row.name;
    EXPECT_EQ(units.largest_finite, row.largest_finite) << row.name;
    EXPECT_EQ(units.smallest_normal, row.smallest_normal) << row.name;
    EXPECT_EQ(units.saturates, row.saturates) << row.name;
  }
}

TEST(RoundingError, FromTheRoundedResult) {
  const RoundingUnits half(softfloat::binary16);
  EXPECT_EQ(rounding_error(half, 3.0), 3 * 0x1p-11);
  EXPECT_EQ(rounding_error(half, -3.0), 3 * 0x1p-11);
  EXPECT_EQ(rounding_error(half, 0.0), 0x1p-25);
  EXPECT_EQ(rounding_error(half, 0x1p-20), 0x1p-25);
  EXPECT_EQ(rounding_error(half, 0x1p-14), 0x1p-25);
  EXPECT_EQ(rounding_error(half, 0x1p-13), 0x1p-24);
  EXPECT_EQ(rounding_error(half, 65504.0), 65504 * 0x1p-11);
  EXPECT_EQ(rounding_error(half, -HUGE_VAL), no_bound);
  EXPECT_EQ(rounding_error(half, std::nan("")), no_bound);
}

// 6 may be what is left of 1000: only smaller results tell how far they are off.
TEST(RoundingError, OfAFormatThatSaturates) {
  const RoundingUnits units(softfloat::e2m1);
  EXPECT_EQ(rounding_error(units, 4.0), 1.0);
  EXPECT_EQ(rounding_error(units, 6.0), no_bound);
  EXPECT_EQ(rounding_error(units, -6.0), no_bound);
}

TEST(RoundingError, FromTheMagnitudeBefore) {
  const RoundingUnits half(softfloat::binary16);
  expect_just_above(rounding_error_before(half, 3.0), 3 * 0x1p-11);
  EXPECT_EQ(rounding_error_before(half, 0.0), 0x1p-25);
  EXPECT_EQ(rounding_error_before(half, 0x1p-15), 0x1p-25);
  EXPECT_NE(rounding_error_before(half, 65503.0), no_bound);
  EXPECT_EQ(rounding_error_before(half, 65504.0), no_bound);
  EXPECT_EQ(rounding_error_before(half, no_bound), no_bound);
  EXPECT_EQ(rounding_error_before(half, std::nan("")), no_bound);
}

TEST(Expm1Above, IsAboveAndClose) {
  EXPECT_EQ(expm1_above(0.0), 0.0);
  for (const double x : {0x1p-40, 0x1p-11, 0x1p-10, 0x1.01p-10, 0.5, 1.0, 20.0, 699.0}) {
    EXPECT_GE(expm1_above(x), std::expm1(x)) << x;  // its own error is far below 2^−32
    EXPECT_LE(expm1_above(x), std::expm1(x) * (1 + 0x1p-10)) << x;
  }
  EXPECT_EQ(expm1_above(700.0), no_bound);
  EXPECT_EQ(expm1_above(no_bound), no_bound);
  EXPECT_EQ(expm1_above(std::nan("")), no_bound);
}

double bound(std::string_view order, std::int64_t terms, double absolute_sum,
             const softfloat::Format& format) {
  return SumBound(RoundingUnits(format), parse_order(order).value(), terms)(absolute_sum);
}

// relative·(A(1 + u) + 2nq) + uA + 2nq(1 + relative) with q half a quantum.
double closed_form(double relative, double terms, double absolute, double u, double q) {
  const double quanta = 2 * terms * q;
  return relative * (absolute * (1 + u) + quanta) + u * absolute + quanta * (1 + relative);
}

TEST(SumBound, TakesTheSmallerRelativePart) {
  constexpr double u = 0x1p-11;
  constexpr double q = 0x1p-25;
  // One term: the product only.
  expect_just_above(bound("sequential", 1, 5.0, softfloat::binary16), closed_form(0, 1, 5, u, q));
  // 100 terms in sequence: height 99, (n − 1)u is smaller than γ_99.
  expect_just_above(bound("sequential", 100, 5.0, softfloat::binary16),
                    closed_form(99 * u, 100, 5, u, q));
  // A tree of height 7 over 100 terms: γ_7.
  expect_just_above(bound("pairwise", 100, 5.0, softfloat::binary16),
                    closed_form(7 * u / (1 - 7 * u), 100, 5, u, q));
  // Blocks of 10, each a tree of height 4, then 9 additions: γ_13.
  expect_just_above(bound("blocks(10)/pairwise", 100, 5.0, softfloat::binary16),
                    closed_form(13 * u / (1 - 13 * u), 100, 5, u, q));
  // hu ≥ 1 leaves no γ: u = 1/16 in e4m3, 16 additions.
  expect_just_above(bound("sequential", 17, 5.0, softfloat::e4m3),
                    closed_form(1, 17, 5, 0x1p-4, 0x1p-10));
}

TEST(SumBound, QuantaCountWhereNothingElseDoes) {
  expect_just_above(bound("sequential", 3, 0.0, softfloat::binary16),
                    closed_form(2 * 0x1p-11, 3, 0, 0x1p-11, 0x1p-25));
  EXPECT_EQ(bound("sequential", 0, 0.0, softfloat::binary16), 0.0);
  EXPECT_EQ(bound("exact", 0, 0.0, softfloat::binary16), 0.0);
}

TEST(SumBound, AnExactOrderRoundsOnce) {
  expect_just_above(bound("exact", 1000, 5.0, softfloat::binary16), 5 * 0x1p-11);
  expect_just_above(bound("exact(init=zero)", 1000, 5.0, softfloat::binary16), 5 * 0x1p-11);
  EXPECT_EQ(bound("exact", 1000, 0x1p-20, softfloat::binary16), 0x1p-25);
  // Exact blocks are joined by rounded additions: height 1 + 9.
  expect_just_above(bound("blocks(10)/exact", 100, 5.0, softfloat::binary16),
                    closed_form(10 * 0x1p-11 / (1 - 10 * 0x1p-11), 100, 5, 0x1p-11, 0x1p-25));
}

TEST(SumBound, IsInfiniteWhereASumCouldOverflow) {
  EXPECT_EQ(bound("exact", 4, 65504.0, softfloat::binary16), no_bound);
  EXPECT_NE(bound("exact", 4, 65503.0, softfloat::binary16), no_bound);
  // (1 + u)(1 + 3u) × 65400 = 65527.7 is too large for four terms in sequence, 65300 is not.
  EXPECT_EQ(bound("sequential", 4, 65400.0, softfloat::binary16), no_bound);
  EXPECT_NE(bound("sequential", 4, 65300.0, softfloat::binary16), no_bound);
  EXPECT_EQ(bound("sequential", 4, std::nan(""), softfloat::binary16), no_bound);
  EXPECT_EQ(bound("sequential", 4, no_bound, softfloat::binary32), no_bound);
}

}  // namespace
}  // namespace kvsim
