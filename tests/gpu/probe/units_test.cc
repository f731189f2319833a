// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// Probing the simulator's own units returns what the table declares, and shows it.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "gpu/probe/probe.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::binary16;
using softfloat::binary32;

Properties properties_of(const MatrixUnit& row) {
  SimulatedUnit unit(row);
  const auto found = find_properties(unit);
  EXPECT_TRUE(found) << row.name << ": " << (found ? "" : found.error().message);
  return found ? *found : Properties{};
}

std::string seen(std::string_view unit, std::string_view name) {
  return to_string(find_property(properties_of(*find_matrix_unit(unit)), name));
}

TEST(Units, EveryRowIsRecovered) {
  ASSERT_GT(matrix_units().size(), 100U);
  for (const MatrixUnit& row : matrix_units()) {
    SimulatedUnit unit(row);
    const auto probe = probe_unit(unit, row, {.random_rows = 16});
    ASSERT_TRUE(probe) << row.name;
    EXPECT_TRUE(probe->equal()) << row.name;
    EXPECT_EQ(probe->different, 0U) << row.name;
    for (const ComparedProperty& one : probe->properties) {
      EXPECT_NE(one.agrees, std::optional(false))
          << row.name << ", " << one.name << ": " << to_string(one.seen) << ", declared "
          << to_string(one.declared);
    }
  }
}

/// Numbers of 4 and 6 bits reach so little that a binary16 result hides the last fraction bits.
bool hides_fraction(const MatrixUnit& row) {
  return row.operand.width() <= 6 && row.output == binary16;
}

bool is_fused(const MatrixUnit& row) {
  return row.operation != UnitOperation::fma && row.operation != UnitOperation::ftz_add_mul &&
         row.operation != UnitOperation::e_fdpa;
}

// The parameters of the table, number by number. A unit that no probe can see would agree with any
// table: so what must be visible is said here.
TEST(Units, TheTablesNumbersAreSeen) {
  for (const MatrixUnit& row : matrix_units()) {
    const Properties found = properties_of(row);
    const bool chain = row.operation == UnitOperation::fma;
    const std::string structure = to_string(find_property(found, property::structure));
    const int k = row.fan_in * row.blocks;
    EXPECT_EQ(structure.substr(0, structure.find_first_of(",(")),
              chain
                  ? std::to_string(k) + " products in turn"
                  : std::to_string(row.blocks) + (row.blocks == 1 ? " block of " : " blocks of ") +
                        std::to_string(row.fan_in) +
                        (row.operation == UnitOperation::e_fdpa        ? " summed exactly"
                         : row.operation == UnitOperation::ftz_add_mul ? " joined in pairs"
                         : row.order == OperandOrder::pairs_of_four    ? " "
                                                                       : ""))
        << row.name;
    const std::map<OutputConversion, int> precisions{{OutputConversion::rz_fp32, 24},
                                                     {OutputConversion::rz_e8m13, 14},
                                                     {OutputConversion::rne_fp16, 11},
                                                     {OutputConversion::rne_fp32, 24},
                                                     {OutputConversion::rne_fp64, 53}};
    EXPECT_EQ(find_property(found, property::precision), seen_number(precisions.at(row.conversion)))
        << row.name;
    EXPECT_EQ(to_string(find_property(found, property::rounding)),
              std::string(to_string(row.conversion)).starts_with("RZ") ? "toward zero"
                                                                       : "to nearest, ties to even")
        << row.name;
    if (!is_fused(row)) continue;
    const bool late = row.final_bits != 0;
    const Seen among = find_property(found, property::fraction_bits);
    const Seen beside = find_property(found, property::addend_bits);
    const Seen fraction = seen_number(row.fraction_bits);
    if (!hides_fraction(row)) {
      EXPECT_TRUE(among == fraction || (beside == fraction && !late)) << row.name;
    }
    if (late) {
      EXPECT_EQ(beside, seen_number(row.final_bits)) << row.name;
    }
  }
}

TEST(Units, TheZeroExponentIsSeenWhereNumbersReachIt) {
  int visible = 0;
  for (const MatrixUnit& row : matrix_units()) {
    if (!is_fused(row) || row.final_bits != 0) continue;
    const Seen zero = find_property(properties_of(row), property::zero_exponent);
    const bool wide = row.operand.exponent_bits == 8 && row.output == binary32;
    const bool half = row.operand == binary16 && row.output == binary16 && row.zero_exponent > -30;
    const bool scaled = row.scale_block != 0 && row.scale == softfloat::e8m0;
    if (wide || half || scaled) {
      EXPECT_EQ(zero, seen_number(row.zero_exponent)) << row.name;
      ++visible;
    } else {
      EXPECT_NE(zero.kind, Seen::Kind::number) << row.name;
    }
  }
  EXPECT_EQ(visible, 14 + 7 + 12);
}

// Hand-worked from the tables of MMA-Sim v2 and from Intel's manual.
TEST(Units, WordsOfSingleUnits) {
  EXPECT_EQ(seen("v100.mma.f16.f32", property::structure), "1 block of 4, c first");
  EXPECT_EQ(seen("a100.mma.f16.f32", property::structure), "2 blocks of 8, c first");
  EXPECT_EQ(seen("h100.mma.e4m3.f16", property::structure),
            "2 blocks of 16 (k mod 4 = 0, 1, then 2, 3), c last");
  EXPECT_EQ(seen("h100.mma.e4m3.f32", property::last_rounding), "to nearest, ties to even");
  EXPECT_EQ(seen("h100.wgmma.e4m3.f32", property::precision), "14");
  EXPECT_EQ(seen("h100.wgmma.e4m3.f32", property::fraction_bits), "13");
  EXPECT_EQ(seen("h100.wgmma.e4m3.f32", property::nan), "0x7fffffff");
  EXPECT_EQ(seen("h100.mma.f16.f16", property::zero_exponent), "-22");
  EXPECT_EQ(seen("h100.wgmma.f16.f16", property::zero_exponent), "at most -23");
  EXPECT_EQ(seen("b200.tcgen05.nvf4.f32", property::addend_bits), "35");
  EXPECT_EQ(seen("mi100.mfma.bf16.f32", property::fraction_bits), "no limit");
  EXPECT_EQ(seen("mi210.mfma.bf16.f32", property::subnormal_operands), "flushed");
  EXPECT_EQ(seen("mi300.mfma.f16.f32", property::fraction_bits), "24");
  EXPECT_EQ(seen("mi300.mfma.f16.f32", property::addend_bits), "31");
  EXPECT_EQ(seen("mi300.mfma.f16.f32", property::cut), "down");
  EXPECT_EQ(seen("mi300.mfma.xf32.f32", property::operand), "dropped");
  EXPECT_EQ(seen("x86.vdpbf16ps.bf16.f32", property::structure),
            "2 products in turn, odd k first, c first");
  EXPECT_EQ(seen("x86.vdpbf16ps.bf16.f32", property::nan), "that of the operand");
  EXPECT_EQ(seen("x86.tdpbf16ps.bf16.f32", property::structure),
            "32 products in turn, 2 accumulators, c last");
  EXPECT_EQ(seen("x86.tdpbf16ps.bf16.f32", property::negative_zeros), "+0");
}

}  // namespace
}  // namespace kvsim::gpu
