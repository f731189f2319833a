// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Orders that end in a matrix unit: against unit_dot() called directly, and against parts put
// together by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/order.h"
#include "sim/sum.h"
#include "sim/sum_tree.h"
#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/operations.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

struct Factors {
  std::vector<Bits> a;
  std::vector<Bits> b;
};

/// Any codes whatever, or numbers of either sign around 1.
Factors factors(std::mt19937_64& random, const Format& format, std::int64_t n, bool any) {
  const auto code = [&] {
    if (any) return random() & format.code_mask();
    const Bits sign = random() % 2 == 0 ? format.sign_bit() : 0;
    const auto exponent = static_cast<Bits>(format.bias - 1 + static_cast<int>(random() % 3));
    return sign | (exponent << format.trailing_bits()) | (random() & format.trailing_mask());
  };
  Factors result;
  for (std::int64_t i = 0; i < n; ++i) {
    result.a.push_back(code());
    result.b.push_back(code());
  }
  return result;
}

Bits order_sum(const std::string& order, const MatrixUnit& unit, const Factors& f,
               const Format& accumulator) {
  return sum_products(parse_order(order).value(), Product::rounded, unit.operand, accumulator, f.a,
                      f.b)
      .bits;
}

/// What the unit gives for terms begin … end − 1.
Bits part(const MatrixUnit& unit, const Factors& f, std::size_t begin, std::size_t end) {
  return unit_dot(unit, {.a = std::span(f.a).subspan(begin, end - begin),
                         .b = std::span(f.b).subspan(begin, end - begin)});
}

Bits canonical(const Format& format, Bits code) {
  return softfloat::is_nan(format, code) ? format.canonical_nan() : code;
}

TEST(UnitOrder, EveryUnitSumsAsItDoesAlone) {
  std::mt19937_64 random(31);
  int units = 0;
  for (const MatrixUnit& unit : matrix_units()) {
    if (unit.scale_block > 0) continue;
    ++units;
    const std::string order = "mma(" + std::string(unit.name) + ")";
    for (std::int64_t n = 0; n <= 64; ++n) {
      const Factors f = factors(random, unit.operand, n, n % 5 == 4);
      const Bits expected =
          n == 0 ? Bits{0} : canonical(unit.output, part(unit, f, 0, static_cast<std::size_t>(n)));
      ASSERT_EQ(order_sum(order, unit, f, unit.output), expected) << order << " over " << n;
      const SumTree tree = build_sum_tree(parse_order(order).value(), n).value();
      ASSERT_EQ(
          evaluate_tree(tree, Product::rounded, unit.operand, unit.output, f.a, f.b).value().bits,
          expected)
          << to_string(tree);
    }
  }
  EXPECT_GT(units, 40);
}

// 2^−25 is half of binary16's smallest number; the 2^−45 beside it decides. With e_zero = −21 the
// terms keep 24 bits below 2^−21, with −20 it is cut off and the tie goes to zero.
TEST(UnitOrder, OptionsOfTheUnitCount) {
  const Factors f = {{0x0c00, 0x0004}, {0x0800, 0x0002}};  // 2^−12 × 2^−13 and 2^−22 × 2^−23
  const MatrixUnit& unit = *find_matrix_unit("a100.mma.f16.f16");
  EXPECT_EQ(order_sum("mma(a100.f16.f16)", unit, f, unit.output), 0x0001U);
  EXPECT_EQ(order_sum("mma(a100.mma.f16.f16(zero_exponent=-20))", unit, f, unit.output), 0x0000U);
}

TEST(UnitOrder, PromotionAddsTheUnitsSumsInTheAccumulator) {
  const MatrixUnit& unit = *find_matrix_unit("h100.wgmma.e4m3.f32");
  std::mt19937_64 random(33);
  int different = 0;
  for (const std::size_t n : {100U, 128U, 129U, 256U, 640U, 1000U}) {
    const Factors f = factors(random, unit.operand, static_cast<std::int64_t>(n), false);
    Bits expected = part(unit, f, 0, std::min<std::size_t>(n, 128));
    for (std::size_t begin = 128; begin < n; begin += 128) {
      expected = softfloat::add(softfloat::binary32, expected,
                                part(unit, f, begin, std::min(n, begin + 128)))
                     .bits;
    }
    EXPECT_EQ(order_sum("blocks(128)/mma(h100.wgmma.e4m3.f32)", unit, f, softfloat::binary32),
              expected);
    different +=
        order_sum("mma(h100.wgmma.e4m3.f32)", unit, f, softfloat::binary32) != expected ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

TEST(UnitOrder, SplitKRoundsWhereItSays) {
  const MatrixUnit& unit = *find_matrix_unit("a100.mma.bf16.f32");
  const Format wide = softfloat::binary32;
  const auto stored = [&](Bits sum) {
    const Bits narrow = softfloat::convert(softfloat::bfloat16, wide, sum).bits;
    return softfloat::convert(wide, softfloat::bfloat16, narrow).bits;
  };
  const auto plus = [&](Bits x, Bits y) { return softfloat::add(wide, x, y).bits; };
  std::mt19937_64 random(34);
  for (int trial = 0; trial < 200; ++trial) {
    // 300 terms in 4 parts: ⌈300/4⌉ = 75, rounded up to 96: 96, 96, 96 and 12.
    const Factors f = factors(random, unit.operand, 300, false);
    const std::vector<Bits> p = {part(unit, f, 0, 96), part(unit, f, 96, 192),
                                 part(unit, f, 192, 288), part(unit, f, 288, 300)};
    const auto sum = [&](const std::string& arguments) {
      return order_sum("split(4,multiple=32" + arguments + ")/mma(a100.mma.bf16.f32)", unit, f,
                       wide);
    };
    EXPECT_EQ(sum(""), plus(plus(plus(p[0], p[1]), p[2]), p[3]));
    EXPECT_EQ(sum(",merge=reverse"), plus(plus(plus(p[3], p[2]), p[1]), p[0]));
    EXPECT_EQ(sum(",merge=pairwise"), plus(plus(p[0], p[1]), plus(p[2], p[3])));
    EXPECT_EQ(sum(",merge=butterfly"), plus(plus(p[0], p[2]), plus(p[1], p[3])));
    EXPECT_EQ(sum(",partials=bf16"),
              plus(plus(plus(stored(p[0]), stored(p[1])), stored(p[2])), stored(p[3])));
    EXPECT_EQ(sum(",running=bf16"),
              stored(plus(stored(plus(stored(plus(stored(p[0]), p[1])), p[2])), p[3])));
    EXPECT_EQ(sum(",merge=pairwise,partials=bf16,running=bf16"),
              stored(plus(stored(plus(stored(p[0]), stored(p[1]))),
                          stored(plus(stored(p[2]), stored(p[3]))))));
  }
}

TEST(UnitOrder, RangesBelowReverseAndLanes) {
  const MatrixUnit& unit = *find_matrix_unit("v100.mma.f16.f32");
  std::mt19937_64 random(35);
  const Factors f = factors(random, unit.operand, 30, false);
  Factors reversed = f;
  std::reverse(reversed.a.begin(), reversed.a.end());
  std::reverse(reversed.b.begin(), reversed.b.end());
  EXPECT_EQ(order_sum("reverse/mma(v100.f16.f32)", unit, f, unit.output),
            part(unit, reversed, 0, 30));
  Factors even;
  Factors odd;
  for (std::size_t i = 0; i < 30; ++i) {
    (i % 2 == 0 ? even : odd).a.push_back(f.a[i]);
    (i % 2 == 0 ? even : odd).b.push_back(f.b[i]);
  }
  EXPECT_EQ(
      order_sum("lanes(2)/mma(v100.f16.f32)", unit, f, unit.output),
      softfloat::add(softfloat::binary32, part(unit, even, 0, 15), part(unit, odd, 0, 15)).bits);
}

TEST(UnitOrder, HeightCountsRoundedSums) {
  const auto height_of = [](const char* order, std::int64_t n) {
    return height(parse_order(order).value(), n);
  };
  EXPECT_EQ(height_of("mma(h100.f16.f32)", 1), 0);
  EXPECT_EQ(height_of("mma(h100.f16.f32)", 16), 1);
  EXPECT_EQ(height_of("mma(h100.f16.f32)", 17), 2);
  EXPECT_EQ(height_of("mma(a100.f16.f32)", 128), 16);
  EXPECT_EQ(height_of("mma(v100.f16.f32)", 128), 32);
  EXPECT_EQ(height_of("blocks(128)/mma(h100.wgmma.e4m3.f32)", 512), 4 + 3);
  EXPECT_EQ(height_of("mma(a100.mma.f64.f64)", 10), 9);        // a chain of additions
  EXPECT_EQ(height_of("mma(h100.mma.e4m3.f32)", 32), 2);       // two blocks; c is +0
  EXPECT_EQ(height_of("mma(h100.mma.e4m3.f32)", 96), 6 + 2);   // and two additions of c
  EXPECT_EQ(height_of("mma(mi210.mfma.f16.f32)", 12), 2 + 2);  // pairs of pairs, then chained
}

TEST(UnitOrder, FormatsAreChecked) {
  const auto message = [](const char* order, const Format& input, const Format& accumulator) {
    const Result<bool> fits = check_formats(parse_order(order).value(), input, accumulator);
    return fits ? std::string("fits") : fits.error().message;
  };
  const Format f16 = softfloat::binary16;
  const Format bf16 = softfloat::bfloat16;
  const Format f32 = softfloat::binary32;
  EXPECT_EQ(message("mma(h100.f16.f32)", f16, f32), "fits");
  EXPECT_EQ(message("mma(h100.f16.f16)", f16, f32), "fits");
  EXPECT_EQ(message("split(2,partials=e4m3)/exact", bf16, bf16), "fits");
  EXPECT_EQ(message("split(2,partials=fp32,running=bf16)", bf16, f32), "fits");
  EXPECT_EQ(message("blocks(64)/mma(h100.f16.f32)", bf16, f32),
            "order item mma(h100.mma.f16.f32): input format bfloat16; accepted: binary16, what the "
            "unit reads");
  EXPECT_EQ(message("mma(h100.f16.f32)", f16, f16),
            "order item mma(h100.mma.f16.f32): the accumulator binary16 does not hold every "
            "binary32, the format of the unit's results; accepted: an accumulator that does");
  EXPECT_EQ(message("split(2,partials=bf16)", f16, f16),
            "order item split(2,partials=bfloat16): the accumulator binary16 does not hold every "
            "bfloat16, the format of partial sums; accepted: an accumulator that does");
  EXPECT_EQ(message("split(2)/blocks(2,running=fp32)", f16, bf16),
            "order item blocks(2,running=binary32): the accumulator bfloat16 does not hold every "
            "binary32, the format of the running sum; accepted: an accumulator that does");
}

}  // namespace
}  // namespace kvsim
