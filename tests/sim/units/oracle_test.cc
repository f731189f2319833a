// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Every row against its definition in GMP integers (unit_oracle.h), on the operands of
/// operand_mix.h; lengths that fill no block, and several
/// instructions in a chain; every value of every open parameter.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/text.h"
#include "tests/sim/units/operand_mix.h"
#include "tests/sim/units/unit_oracle.h"

namespace kvsim::oracle {
namespace {

constexpr std::uint64_t cases = 500;

/// Every row, and every row with each other value of its open parameters.
std::vector<MatrixUnit> all_variants() {
  std::vector<MatrixUnit> units;
  for (const MatrixUnit& row : matrix_units()) {
    units.push_back(row);
    for (const UnitOption& option : row.options) {
      for (const int value : option.accepted) {
        const std::string name = fmt::format("{}({}={})", row.name, to_string(option.parameter),
                                             parameter_text(option.parameter, value));
        const Result<MatrixUnit> unit = parse_matrix_unit(name);
        EXPECT_TRUE(unit) << unit.error().message;
        if (value != parameter_value(row, option.parameter)) units.push_back(*unit);
      }
    }
  }
  return units;
}

std::string list(const Format& format, const std::vector<Bits>& codes) {
  std::string out;
  for (const Bits code : codes) out += softfloat::to_bits_text(format, code) + " ";
  return out;
}

TEST(MatrixUnitOracle, AgreesOnEveryRow) {
  std::uint64_t counter = 0;
  for (const MatrixUnit& unit : all_variants()) {
    const auto instruction = static_cast<std::size_t>(unit.fan_in * unit.blocks);
    // An x86 instruction takes pairs.
    const std::size_t step = unit.nan_rule == NanRule::propagate ? 2 : 1;
    for (std::uint64_t i = 0; i < cases; ++i, ++counter) {
      std::size_t k = instruction;
      if (i % 4 == 1) k = 1 + mix(i) % (2 * instruction);
      if (i % 4 == 2) k = 2 * instruction;
      k = std::max(k / step * step, step);
      const UnitCase each = unit_case(unit, k, counter);
      const Bits got = unit_dot(unit, each.operands());
      const Bits want = expected_dot(unit, each.a, each.b, each.c, each.a_scales, each.b_scales);
      ASSERT_EQ(got, want) << to_string(unit) << " case " << i << ", K " << k << "\na "
                           << list(unit.operand, each.a) << "\nb " << list(unit.operand, each.b)
                           << "\nc " << softfloat::to_bits_text(unit.output, each.c) << "\ngot "
                           << softfloat::to_bits_text(unit.output, got) << ", want "
                           << softfloat::to_bits_text(unit.output, want);
    }
  }
}

TEST(MatrixUnitOracle, ManyFractionBitsGiveTheExactSum) {
  for (const MatrixUnit& row : matrix_units()) {
    if (row.operation != UnitOperation::t_fdpa || row.addend == Addend::last) continue;
    MatrixUnit unit = row;
    unit.fraction_bits = 60;
    for (std::uint64_t i = first_case(Mix::near_one); i < 1000; i += mixes) {
      const UnitCase each = unit_case(unit, static_cast<std::size_t>(unit.fan_in), i);
      EXPECT_EQ(unit_dot(unit, each.operands()), exact_dot_rounded(unit, each.a, each.b, each.c))
          << unit.name << " case " << i;
    }
  }
}

}  // namespace
}  // namespace kvsim::oracle
