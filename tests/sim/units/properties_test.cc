// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// What holds for every input of a matrix unit, whatever its parameters are. (That an element which
/// moves to another block changes bits is shown by FanInByAbsorption in golden_test.cc.)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "tests/sim/units/codes.h"
#include "tests/sim/units/operand_mix.h"

namespace kvsim::oracle {
namespace {

constexpr std::uint64_t cases = 300;

Bits dot(const MatrixUnit& unit, const UnitCase& each) { return unit_dot(unit, each.operands()); }

void exchange(UnitCase& each, std::size_t i, std::size_t j) {
  std::swap(each.a[i], each.a[j]);
  std::swap(each.b[i], each.b[j]);
}

/// A stride at which elements of one block may change places: GTR-FDPA keeps even and odd k apart,
/// the others take any.
std::size_t stride(const MatrixUnit& unit) {
  return unit.operation == UnitOperation::gtr_fdpa ? 2 : 1;
}

TEST(MatrixUnitProperties, OrderInsideABlockChangesNothing) {
  for (const MatrixUnit& unit : matrix_units()) {
    if (unit.operation == UnitOperation::fma || unit.operation == UnitOperation::ftz_add_mul) {
      continue;
    }
    // Elements that share their scales and their block.
    const std::size_t width = unit.order == OperandOrder::pairs_of_four ? 2
                              : unit.scale_block != 0
                                  ? static_cast<std::size_t>(std::min(unit.scale_block, 16))
                                  : static_cast<std::size_t>(unit.fan_in);
    for (std::uint64_t i = 0; i < cases; ++i) {
      UnitCase each = unit_case(unit, static_cast<std::size_t>(unit.fan_in * unit.blocks), i);
      const Bits before = dot(unit, each);
      for (std::size_t at = 0; at + stride(unit) < width; ++at) {
        const std::size_t steps = (width - at - 1) / stride(unit);
        exchange(each, at, at + stride(unit) * (mix(i + at) % (steps + 1)));
      }
      ASSERT_EQ(dot(unit, each), before) << unit.name << " case " << i;
    }
  }
}

UnitCase negated(const MatrixUnit& unit, UnitCase each) {
  for (Bits& code : each.a) code ^= limits(unit.operand).sign;
  each.c ^= limits(unit.output).sign;
  return each;
}

TEST(MatrixUnitProperties, TruncationIsSymmetricAndRoundingDownIsNot) {
  for (const MatrixUnit& unit : matrix_units()) {
    const bool late =
        unit.operation == UnitOperation::tr_fdpa || unit.operation == UnitOperation::gtr_fdpa;
    std::size_t differing = 0;
    for (std::uint64_t i = first_case(Mix::near_one); i < mixes * cases; i += mixes) {
      const UnitCase each = unit_case(unit, static_cast<std::size_t>(unit.fan_in), i);
      // Codes of "fnuz" formats have no −0.
      if (late && limits(unit.operand).has_negative_zero == false &&
          std::count(each.a.begin(), each.a.end(), Bits{0}) > 0) {
        continue;
      }
      const Bits plain = dot(unit, each);
      const Bits mirrored = dot(unit, negated(unit, each));
      if ((plain & ~limits(unit.output).sign) == 0) continue;  // an exact zero is +0 both times
      differing += mirrored != (plain ^ limits(unit.output).sign) ? 1 : 0;
    }
    if (late) {
      EXPECT_GT(differing, 0U) << unit.name;
    } else {
      EXPECT_EQ(differing, 0U) << unit.name;
    }
  }
}

TEST(MatrixUnitProperties, PowersOfTwoScaleTheResult) {
  for (const MatrixUnit& unit : matrix_units()) {
    if (unit.operand.exponent_bits < 5 || unit.order == OperandOrder::pairs_of_four) continue;
    for (std::uint64_t i = first_case(Mix::near_one); i < mixes * cases; i += mixes) {
      UnitCase each = unit_case(unit, static_cast<std::size_t>(unit.fan_in), i);
      each.c = mixed_code(unit.output, Mix::near_one, false, i + 7);
      const Bits before = dot(unit, each);
      const int shift = static_cast<int>(i % 3) + 1;
      const auto scale = [&](const Format& f, Bits& code) {
        const Bits one_step = static_cast<Bits>(shift) << (f.precision - 1);
        if ((code & ~limits(f).sign) != 0) code += one_step;
      };
      for (Bits& code : each.a) scale(unit.operand, code);
      scale(unit.output, each.c);
      Bits expected = before;
      const Bits field = (before & limits(unit.output).infinity) >> (unit.output.precision - 1);
      if (field < 4 || field + 4 >= (Bits{1} << unit.output.exponent_bits) - 1) continue;
      scale(unit.output, expected);
      ASSERT_EQ(dot(unit, each), expected) << unit.name << " case " << i;
    }
  }
}

TEST(MatrixUnitProperties, ZeroPaddingChangesNothing) {
  for (const MatrixUnit& unit : matrix_units()) {
    const auto fan_in = static_cast<std::size_t>(unit.fan_in);
    if (fan_in == 1) continue;
    for (std::uint64_t i = first_case(Mix::near_one); i < mixes * cases; i += mixes) {
      const std::size_t length = 1 + mix(i) % (fan_in - 1);
      UnitCase each = unit_case(unit, length, i);
      const Bits before = dot(unit, each);
      each.a.resize(fan_in), each.b.resize(fan_in);
      if (unit.scale_block != 0) {
        const auto blocks = fan_in / static_cast<std::size_t>(unit.scale_block);
        each.a_scales.resize(blocks, each.a_scales.front());
        each.b_scales.resize(blocks, each.b_scales.front());
      }
      ASSERT_EQ(dot(unit, each), before) << unit.name << " case " << i;
    }
  }
}

// Whatever a unit does to the bits below, sums of small integers lose none.
TEST(MatrixUnitProperties, SmallIntegersAreExact) {
  for (const MatrixUnit& unit : matrix_units()) {
    for (std::uint64_t i = 0; i < cases; ++i) {
      const auto k = static_cast<std::size_t>(unit.fan_in * unit.blocks) + i % 7;
      UnitCase each;
      long sum = static_cast<long>(mix(i) % 9) - 4;
      each.c = integer(unit.output, sum);
      for (std::size_t j = 0; j < k / 2 * 2; ++j) {
        const std::uint64_t word = mix(1000 * i + j);
        const long a = static_cast<long>(word % 5) - 2;
        const long b = static_cast<long>(word / 5 % 5) - 2;
        each.a.push_back(integer(unit.operand, a));
        each.b.push_back(integer(unit.operand, b));
        sum += a * b;
      }
      if (unit.scale_block != 0) {
        each.a_scales.assign(each.a.size() / 16 + 1, power_of_two(unit.scale, 0));
        each.b_scales = each.a_scales;
      }
      ASSERT_EQ(dot(unit, each), integer(unit.output, sum)) << unit.name << " case " << i;
    }
  }
}

// Larger terms may give a smaller sum: the units are not monotone.
TEST(MatrixUnitProperties, TruncatedSumsAreNotMonotone) {
  const MatrixUnit* unit = find_matrix_unit("v100.mma.f16.f32");
  ASSERT_NE(unit, nullptr);
  // c = 1 − 2^−24 and three times 2^−24 give 1 + 2^−23; with c = 1 they are cut off and give 1.
  const std::vector<Bits> tiny(3, power_of_two(softfloat::binary16, -12));
  const auto run = [&](Bits c) { return unit_dot(*unit, {.a = tiny, .b = tiny, .c = c}); };
  EXPECT_EQ(run(0x3f7fffff), 0x3f800001U);
  EXPECT_EQ(run(0x3f800000), 0x3f800000U);
}

}  // namespace
}  // namespace kvsim::oracle
