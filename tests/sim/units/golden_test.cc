// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Published vectors, and vectors made by hand for parameters that no hardware row shows. Every
/// number is a power of two; results are written down, not computed.

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "tests/sim/units/codes.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

Bits float_code(float x) { return std::bit_cast<std::uint32_t>(x); }

/// A product: sign × 2^a × 2^b.
struct PowerProduct {
  int a, b;
  bool negative = false;
};

struct Operands {
  std::vector<Bits> a, b;
};

Operands operands(const Format& f, const std::vector<PowerProduct>& products) {
  Operands out;
  for (const PowerProduct& p : products) {
    out.a.push_back(power_of_two(f, p.a, p.negative));
    out.b.push_back(power_of_two(f, p.b));
  }
  return out;
}

MatrixUnit unit_named(std::string_view name) {
  const Result<MatrixUnit> unit = parse_matrix_unit(name);
  EXPECT_TRUE(unit) << unit.error().message;
  return *unit;
}

// MMA-Sim v2, table 8: c = 2^23, products −2^23, −0.5, −0.25, −0.125; the exact sum is −0.875.
TEST(MatrixUnitGolden, TableEightOfMmaSim) {
  struct Row {
    const char* unit;
    float expected;
  };
  constexpr Row rows[] = {
      {"v100.mma.f16.f32", 0.0F},          {"t4.mma.f16.f32", -0.5F},
      {"a100.mma.f16.f32", -0.5F},         {"a100.mma.tf32.f32", -0.5F},
      {"a100.mma.bf16.f32", -0.5F},        {"ada.mma.f16.f32", -0.5F},
      {"ada.mma.tf32.f32", -0.5F},         {"ada.mma.bf16.f32", -0.5F},
      {"ada.mma.e5m2.f32", 0.0F},          {"h100.wgmma.e5m2.f32", 0.0F},
      {"h100.mma.f16.f32", -0.75F},        {"h100.wgmma.f16.f32", -0.75F},
      {"b200.mma.f16.f32", -0.75F},        {"b200.tcgen05.f16.f32", -0.75F},
      {"b200.tcgen05.e5m2.f32", -0.75F},   {"rtxpro6000.mma.f16.f32", -0.75F},
      {"rtxpro6000.mma.e5m2.f32", -0.75F}, {"mi100.mfma.bf16.f32", -0.875F},
      {"mi100.mfma.f16.f32", -0.875F},     {"mi210.mfma.bf16.f32", -0.375F},
      {"mi210.mfma_1k.bf16.f32", 0.0F},    {"mi210.mfma.f16.f32", 0.0F},
      {"mi300.mfma.bf16.f32", -0.5F},      {"mi300.mfma.f16.f32", -0.5F},
      {"mi300.mfma.e5m2fnuz.f32", -1.0F},
  };
  const std::vector<PowerProduct> products = {
      {12, 11, true}, {-1, 0, true}, {-2, 0, true}, {-3, 0, true}};
  for (const Row& row : rows) {
    const MatrixUnit unit = unit_named(row.unit);
    const Operands o = operands(unit.operand, products);
    EXPECT_EQ(unit_dot(unit, {.a = o.a, .b = o.b, .c = float_code(0x1p23F)}),
              float_code(row.expected))
        << row.unit;
  }
  for (const char* name : {"a100.mma.f64.f64", "h100.mma.f64.f64", "mi300.mfma.f64.f64"}) {
    const MatrixUnit unit = unit_named(name);
    const Operands o = operands(unit.operand, products);
    const Bits c = std::bit_cast<std::uint64_t>(0x1p23);
    EXPECT_EQ(unit_dot(unit, {.a = o.a, .b = o.b, .c = c}), std::bit_cast<std::uint64_t>(-0.875))
        << name;
  }
}

TEST(MatrixUnitGolden, TableEightWithBlockScales) {
  const std::vector<PowerProduct> products = {
      {12, 11, true}, {-1, 0, true}, {-2, 0, true}, {-3, 0, true}};
  const Bits one = 127;  // 2^0 as e8m0
  for (const char* name : {"b200.tcgen05.mx_e5m2.f32", "rtxpro6000.mma.mx_e5m2.f32"}) {
    const MatrixUnit unit = unit_named(name);
    const Operands o = operands(unit.operand, products);
    const Bits c = float_code(0x1p23F);
    EXPECT_EQ(unit_dot(unit, {o.a, o.b, c, std::span(&one, 1), std::span(&one, 1)}),
              float_code(-0.75F))
        << name;
  }
  // NVFP4: a group of −128 with scales 2^8 and 2^8, and one of −1.75 with scales 2^−1 and 1.
  for (const char* name : {"b200.tcgen05.nvf4.f32", "rtxpro6000.mma.nvf4.f32"}) {
    const MatrixUnit unit = unit_named(name);
    std::vector<PowerProduct> groups(8, PowerProduct{2, 2, true});
    Operands o = operands(unit.operand, groups);
    o.a.resize(16), o.b.resize(16);
    const Operands small = operands(unit.operand, {{0, 0, true}, {-1, 0, true}, {-1, -1, true}});
    o.a.insert(o.a.end(), small.a.begin(), small.a.end());
    o.b.insert(o.b.end(), small.b.begin(), small.b.end());
    const std::vector<Bits> a_scales = {power_of_two(ue4m3, 8), power_of_two(ue4m3, -1)};
    const std::vector<Bits> b_scales = {power_of_two(ue4m3, 8), power_of_two(ue4m3, 0)};
    EXPECT_EQ(unit_dot(unit, {o.a, o.b, float_code(0x1p23F), a_scales, b_scales}),
              float_code(-0.875F))
        << name;
  }
}

// Where MMA-Sim v2 and arXiv:2512.07004 differ by one: 2^−25 + 2^−45 is above the tie between 0 and
// 2^−24 only if the unit of the sum is 2^−45 or less.
TEST(MatrixUnitGolden, ZeroExponentOfHalfAccumulators) {
  const std::vector<PowerProduct> products = {{-12, -13}, {-21, -24}};
  const Operands o = operands(softfloat::binary16, products);
  EXPECT_EQ(unit_dot(unit_named("a100.mma.f16.f16"), {.a = o.a, .b = o.b}), 0x0001U);
  EXPECT_EQ(unit_dot(unit_named("a100.mma.f16.f16(zero_exponent=-20)"), {.a = o.a, .b = o.b}), 0U);
}

// MMA-Sim's own test of the same: products 2^−25 and 2^−48.
TEST(MatrixUnitGolden, TieOfMmaSim) {
  const Operands o = operands(softfloat::binary16, {{-14, -11}, {-24, -24}});
  MatrixUnit unit = unit_named("a100.mma.f16.f16");
  EXPECT_EQ(unit.fraction_bits, 24);
  EXPECT_EQ(unit_dot(unit, {.a = o.a, .b = o.b}), 0U);
  unit.zero_exponent = -29;
  EXPECT_EQ(unit_dot(unit, {.a = o.a, .b = o.b}), 0x0001U);
}

/// Products at chosen k, zeros elsewhere.
Operands sparse(const Format& f, std::size_t length,
                const std::vector<std::pair<std::size_t, PowerProduct>>& terms) {
  Operands out{std::vector<Bits>(length), std::vector<Bits>(length)};
  for (const auto& [k, p] : terms) {
    out.a[k] = power_of_two(f, p.a, p.negative);
    out.b[k] = power_of_two(f, p.b);
  }
  return out;
}

/// 2^exponent as a product of two numbers of the format, as equal as can be.
PowerProduct product_of(int exponent, bool negative = false) {
  return {exponent / 2, exponent - exponent / 2, negative};
}

bool has_product(const Format& f, int exponent) {
  const PowerProduct p = product_of(exponent);
  return has_power_of_two(f, p.a) && has_power_of_two(f, p.b);
}

bool is_plain(const MatrixUnit& unit) { return unit.operation == UnitOperation::t_fdpa; }

/// The k of a third term in the block of k = 0 and 1.
std::size_t third(const MatrixUnit& unit) {
  return unit.order == OperandOrder::pairs_of_four ? 4 : 2;
}

/// 2^8 + 2^`second` + 2^`last` in one block, by a unit whose F is off by `wrong`.
Bits three_terms(const MatrixUnit& unit, int wrong, const PowerProduct& second, int last) {
  MatrixUnit changed = unit;
  changed.fraction_bits += wrong;
  const Operands o =
      sparse(unit.operand, 32, {{0, product_of(8)}, {1, second}, {third(unit), product_of(last)}});
  const std::size_t length = unit.fan_in == 4 ? 4 : 32;
  return unit_dot(changed, {.a = std::span(o.a).first(length), .b = std::span(o.b).first(length)});
}

// binary16 output hides F from random rows. 2^8 + 2^-3 is a tie; a term of 2^(8−F) lifts it, one of
// 2^(7−F) is cut off.
TEST(MatrixUnitGolden, FractionBitsByTies) {
  std::size_t seen = 0;
  for (const MatrixUnit& unit : matrix_units()) {
    if (!is_plain(unit) || unit.output != softfloat::binary16) continue;
    const int f = unit.fraction_bits;
    if (!has_product(unit.operand, 7 - f)) continue;  // 4- and 6-bit numbers reach no such bit
    ++seen;
    for (const int wrong : {0, 1, -1}) {
      const bool right = three_terms(unit, wrong, product_of(-3), 8 - f) == 0x5c01 &&
                         three_terms(unit, wrong, product_of(-3), 7 - f) == 0x5c00;
      EXPECT_EQ(right, wrong == 0) << unit.name << ", F off by " << wrong;
    }
  }
  EXPECT_EQ(seen, 21U);
}

// The same for binary32 output by cancellation: 2^8 − 2^8 + 2^(8−F).
TEST(MatrixUnitGolden, FractionBitsByCancellation) {
  std::size_t seen = 0;
  for (const MatrixUnit& unit : matrix_units()) {
    if (!is_plain(unit) || unit.output != softfloat::binary32) continue;
    const int f = unit.fraction_bits;
    if (!has_product(unit.operand, 7 - f)) continue;
    ++seen;
    const Bits kept = power_of_two(softfloat::binary32, 8 - f);
    for (const int wrong : {0, 1, -1}) {
      const bool right = three_terms(unit, wrong, product_of(8, true), 8 - f) == kept &&
                         three_terms(unit, wrong, product_of(8, true), 7 - f) == 0;
      EXPECT_EQ(right, wrong == 0) << unit.name << ", F off by " << wrong;
    }
  }
  EXPECT_EQ(seen, 35U);
}

// A group that cancels keeps the exponent of its scales, 16 here, so that 2^(16−F) in another group
// survives and half of it does not.
TEST(MatrixUnitGolden, FractionBitsOfGroups) {
  for (const char* name : {"b200.tcgen05.nvf4.f32", "rtxpro6000.mma.nvf4.f32"}) {
    const MatrixUnit unit = unit_named(name);
    const Operands o = sparse(unit.operand, 64, {{0, {0, 0}}, {1, {0, 0, true}}, {16, {-1, -1}}});
    for (const int wrong : {0, 1, -1}) {
      MatrixUnit changed = unit;
      changed.fraction_bits += wrong;
      const auto run = [&](int b_exponent) {
        const std::vector<Bits> a_scales = {power_of_two(ue4m3, 8), power_of_two(ue4m3, -9), 0, 0};
        const std::vector<Bits> b_scales = {power_of_two(ue4m3, 8), power_of_two(ue4m3, b_exponent),
                                            0, 0};
        return unit_dot(changed, {o.a, o.b, 0, a_scales, b_scales});
      };
      const bool right = run(-8) == power_of_two(softfloat::binary32, -19) && run(-9) == 0;
      EXPECT_EQ(right, wrong == 0) << name << ", F off by " << wrong;
    }
  }
}

// 2^8 − 2^8 + t with t below the last bit of 2^8: t is lost when it stands in their block, and kept
// when it stands in the next one.
TEST(MatrixUnitGolden, FanInByAbsorption) {
  std::size_t seen = 0;
  for (const MatrixUnit& unit : matrix_units()) {
    if (!is_plain(unit) || unit.order == OperandOrder::pairs_of_four) continue;
    const int tiny = 8 - unit.fraction_bits - 1;
    if (!has_product(unit.operand, tiny) || !has_product(unit.operand, 8)) continue;
    ++seen;
    const auto fan_in = static_cast<std::size_t>(unit.fan_in);
    const auto run = [&](std::size_t k) {
      const Operands o =
          sparse(unit.operand, 2 * fan_in,
                 {{0, product_of(8)}, {1, product_of(8, true)}, {k, product_of(tiny)}});
      return unit_dot(unit, {.a = o.a, .b = o.b});
    };
    EXPECT_EQ(run(fan_in - 1), 0U) << unit.name;
    EXPECT_EQ(run(fan_in), power_of_two(unit.output, tiny)) << unit.name;
  }
  EXPECT_EQ(seen, 48U);
}

// CDNA3: c = 1 and sums of products below it. They are rounded down at 2^-32, and with c once more
// at 31 bits below the total's exponent, before ties to even decide.
TEST(MatrixUnitGolden, LateRoundingsOfCdna3) {
  for (const char* name : {"mi300.mfma.f16.f32", "mi300.mfma.bf16.f32", "mi300.mfma.xf32.f32"}) {
    const MatrixUnit unit = unit_named(name);
    const auto run = [](const MatrixUnit& changed, const std::vector<PowerProduct>& products) {
      const Operands o = operands(changed.operand, products);
      return unit_dot(changed, {.a = o.a, .b = o.b, .c = float_code(1)});
    };
    MatrixUnit other = unit;
    // 1 + 2^-24 + 2^-32: the last bit is cut off, and the tie goes to 1.
    const std::vector<PowerProduct> above = {{-12, -12}, {-16, -16}};
    EXPECT_EQ(run(unit, above), 0x3f800000U) << name;
    other.final_rounding_down = false;
    EXPECT_EQ(run(other, above), 0x3f800001U) << name;
    // 1 − 2^-24 − 2^-25 + 2^-32 lies above a tie, and its exponent is −1: the last bit stays.
    const std::vector<PowerProduct> below = {{-12, -12, true}, {-12, -13, true}, {-16, -16}};
    other = unit;
    EXPECT_EQ(run(unit, below), 0x3f7fffffU) << name;
    other.final_bits = 30;
    EXPECT_EQ(run(other, below), 0x3f7ffffeU) << name;
  }
}

// Every product is 0 × −1 and c is −0: units that add them get −0; those that start from +0, that
// flush c to +0, or whose exact zero is +0, do not.
TEST(MatrixUnitGolden, SumsOfNegativeZeros) {
  for (const MatrixUnit& unit : matrix_units()) {
    const auto k = static_cast<std::size_t>(unit.fan_in * unit.blocks);
    const std::vector<Bits> a(k), b(k, power_of_two(unit.operand, 0, true));
    const std::vector<Bits> scales(4, unit.scale_block == 0 ? 0 : power_of_two(unit.scale, 0));
    const Bits negative_zero = Bits{1} << (unit.output.width() - 1);
    const bool positive = unit.addend == Addend::last || unit.operation == UnitOperation::e_fdpa ||
                          unit.operation == UnitOperation::ftz_add_mul;
    EXPECT_EQ(unit_dot(unit, {a, b, negative_zero, scales, scales}),
              positive ? Bits{0} : negative_zero)
        << unit.name;
  }
}

TEST(MatrixUnitGolden, NanCodesOfTheDevices) {
  const auto result = [](std::string_view name, Bits a, Bits b, Bits c) {
    return unit_dot(unit_named(name), {.a = std::span(&a, 1), .b = std::span(&b, 1), .c = c});
  };
  EXPECT_EQ(result("h100.f16.f32", 0xfe01, 0x3c00, 0), 0x7fffffffU);
  EXPECT_EQ(result("h100.f16.f16", 0x7c00, 0x0000, 0), 0x7fffU);               // infinity × 0
  EXPECT_EQ(result("a100.f16.f32", 0x7c00, 0x3c00, 0xff800000), 0x7fffffffU);  // ∞ − ∞
  EXPECT_EQ(result("ada.e4m3.f32", 0x7f, 0x38, 0), 0x7fffffffU);
  EXPECT_EQ(result("a100.f16.f32", 0x7c00, 0xbc00, 0x3f800000), 0xff800000U);
  // Truncation overflows to infinity all the same; a NaN in the dropped bits stays one.
  EXPECT_EQ(result("a100.bf16.f32", 0x7f00, 0x4100, 0x7f000000), 0x7f800000U);
  EXPECT_EQ(result("a100.tf32.f32", 0x7f800001, 0x3f800000, 0), 0x7fffffffU);
}

TEST(MatrixUnitGolden, OperandsOf32BitsAreCutOrRounded) {
  const auto run = [](std::string_view name, Bits a) {
    const Bits one = 0x3f800000;
    return unit_dot(unit_named(name), {.a = std::span(&a, 1), .b = std::span(&one, 1)});
  };
  EXPECT_EQ(run("a100.tf32.f32", 0x3f801fff), 0x3f800000U);
  EXPECT_EQ(run("a100.tf32.f32(operand_rounding=nearest_ties_away)", 0x3f801000), 0x3f802000U);
  EXPECT_EQ(run("a100.tf32.f32(operand_rounding=nearest_ties_away)", 0x3f800fff), 0x3f800000U);
}

}  // namespace
}  // namespace kvsim
