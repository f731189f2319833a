// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "sim/units/matrix_unit.h"

namespace kvsim {
namespace {

// Sets of hardware rows that exist, and the unit that made each.
TEST(MatrixUnitNames, OfEverySetOfHardwareRows) {
  struct Alias {
    std::string_view name, unit;
  };
  constexpr Alias aliases[] = {
      {"v100.f16.f16", "v100.mma.f16.f16"},     {"v100.f16.f32", "v100.mma.f16.f32"},
      {"a100.bf16.f32", "a100.mma.bf16.f32"},   {"a100.f16.f16", "a100.mma.f16.f16"},
      {"a100.f16.f32", "a100.mma.f16.f32"},     {"a100.tf32.f32", "a100.mma.tf32.f32"},
      {"a2.bf16.f32", "a100.mma.bf16.f32"},     {"a2.f16.f16", "a100.mma.f16.f16"},
      {"a2.f16.f32", "a100.mma.f16.f32"},       {"a2.tf32.f32", "a100.mma.tf32.f32"},
      {"ada.bf16.f32", "ada.mma.bf16.f32"},     {"ada.e4m3.f16", "ada.mma.e4m3.f16"},
      {"ada.e4m3.f32", "ada.mma.e4m3.f32"},     {"ada.e5m2.f16", "ada.mma.e5m2.f16"},
      {"ada.e5m2.f32", "ada.mma.e5m2.f32"},     {"ada.f16.f16", "ada.mma.f16.f16"},
      {"ada.f16.f32", "ada.mma.f16.f32"},       {"ada.tf32.f32", "ada.mma.tf32.f32"},
      {"b200.bf16.f32", "b200.mma.bf16.f32"},   {"b200.e4m3.f16", "b200.mma.e4m3.f16"},
      {"b200.e4m3.f32", "b200.mma.e4m3.f32"},   {"b200.e5m2.f16", "b200.mma.e5m2.f16"},
      {"b200.e5m2.f32", "b200.mma.e5m2.f32"},   {"b200.f16.f16", "b200.mma.f16.f16"},
      {"b200.f16.f32", "b200.mma.f16.f32"},     {"b200.tf32.f32", "b200.mma.tf32.f32"},
      {"h100.bf16.f32", "h100.mma.bf16.f32"},   {"h100.e4m3.f16", "h100.mma.e4m3.f16"},
      {"h100.e4m3.f32", "h100.wgmma.e4m3.f32"}, {"h100.e5m2.f16", "h100.mma.e5m2.f16"},
      {"h100.e5m2.f32", "h100.wgmma.e5m2.f32"}, {"h100.f16.f16", "h100.mma.f16.f16"},
      {"h100.f16.f32", "h100.mma.f16.f32"},     {"h100.tf32.f32", "h100.mma.tf32.f32"},
      {"h200.bf16.f32", "h100.mma.bf16.f32"},   {"h200.e4m3.f16", "h100.mma.e4m3.f16"},
      {"h200.e4m3.f32", "h100.wgmma.e4m3.f32"}, {"h200.e5m2.f16", "h100.mma.e5m2.f16"},
      {"h200.e5m2.f32", "h100.wgmma.e5m2.f32"}, {"h200.f16.f16", "h100.mma.f16.f16"},
      {"h200.f16.f32", "h100.mma.f16.f32"},     {"h200.tf32.f32", "h100.mma.tf32.f32"},
      {"l40s.bf16.f32", "ada.mma.bf16.f32"},    {"l40s.e4m3.f32", "ada.mma.e4m3.f32"},
      {"l40s.e5m2.f32", "ada.mma.e5m2.f32"},    {"l40s.f16.f16", "ada.mma.f16.f16"},
      {"l40s.f16.f32", "ada.mma.f16.f32"},      {"l40s.tf32.f32", "ada.mma.tf32.f32"},
  };
  EXPECT_EQ(std::size(aliases), 48U);
  for (const Alias& alias : aliases) {
    const MatrixUnit* unit = find_matrix_unit(alias.name);
    ASSERT_NE(unit, nullptr) << alias.name;
    EXPECT_EQ(unit->name, alias.unit) << alias.name;
    EXPECT_EQ(unit->evidence, softfloat::Evidence::measured) << alias.name;
    const auto all = unit_aliases(*unit);
    EXPECT_NE(std::find(all.begin(), all.end(), alias.name), all.end()) << alias.name;
  }
}

TEST(MatrixUnitNames, NameOneRowEach) {
  std::set<std::string> names;
  for (const MatrixUnit& unit : matrix_units()) {
    EXPECT_TRUE(names.insert(std::string(unit.name)).second) << unit.name;
    for (const std::string& alias : unit_aliases(unit)) {
      EXPECT_TRUE(names.insert(alias).second) << alias;
      EXPECT_EQ(find_matrix_unit(alias), &unit) << alias;
    }
    EXPECT_EQ(to_string(*parse_matrix_unit(unit.name)), unit.name);
  }
}

TEST(MatrixUnitNames, RowsAreComplete) {
  EXPECT_GT(matrix_units().size(), 90U);
  for (const MatrixUnit& unit : matrix_units()) {
    EXPECT_FALSE(unit.instruction.empty()) << unit.name;
    EXPECT_TRUE(std::regex_search(std::string(unit.source), std::regex("20[0-9]{2}-[01][0-9]")))
        << unit.name << ": no date";
    EXPECT_GT(unit.fan_in, 0) << unit.name;
    EXPECT_GT(unit.blocks, 0) << unit.name;
    EXPECT_NE(unit.nan_code, 0U) << unit.name;
    EXPECT_EQ(unit.name.substr(unit.name.rfind('.') + 1), unit_format_name(unit.output));
    for (const UnitOption& option : unit.options) {
      // The chosen value comes first, and is what the row has.
      EXPECT_EQ(option.accepted.front(), parameter_value(unit, option.parameter)) << unit.name;
      EXPECT_GT(option.accepted.size(), 1U) << unit.name;
      EXPECT_FALSE(option.reason.empty()) << unit.name;
    }
  }
}

// L, F, conversion and zero exponent as published (MMA-Sim v2, tables 3 to 7), by patterns of
// names: the rows themselves, not what follows from them.
TEST(MatrixUnitNames, RowsHaveThePublishedParameters) {
  struct Row {
    const char* pattern;
    int fan_in, fraction_bits;
    const char* conversion;
    int zero_exponent;
    int units;
  };
  constexpr Row rows[] = {
      {"v100.mma.f16.f32", 4, 23, "RZ-FP32", -131, 1},
      {"v100.mma.f16.f16", 4, 23, "RNE-FP16", -20, 1},
      {"t4.mma.f16.f32", 8, 24, "RZ-FP32", -132, 1},
      {"t4.mma.f16.f16", 8, 24, "RNE-FP16", -21, 1},
      {"(a100|ada).mma.tf32.f32", 4, 24, "RZ-FP32", -132, 2},
      {"(a100|ada).mma.b?f16.f32", 8, 24, "RZ-FP32", -132, 4},
      {"(a100|ada).mma.f16.f16", 8, 24, "RNE-FP16", -21, 2},
      {"ada.mma.e...\\.f32", 16, 13, "RZ-E8M13", -132, 2},
      {"ada.mma.e...\\.f16", 16, 13, "RNE-FP16", -21, 2},
      {"(h100|b200|rtxpro6000).*\\.tf32.f32", 8, 25, "RZ-FP32", -133, 5},
      {"(h100|b200|rtxpro6000).*\\.b?f16.f32", 16, 25, "RZ-FP32", -133, 10},
      {"(h100.wgmma|b200.tcgen05).f16.f16", 16, 25, "RNE-FP16", -133, 2},
      {"(h100|b200|rtxpro6000).mma.f16.f16", 16, 25, "RNE-FP16", -22, 3},
      {"h100.wgmma.e...\\.f32", 32, 13, "RZ-E8M13", -133, 2},
      {"h100.wgmma.e...\\.f16", 32, 13, "RNE-FP16", -133, 2},
      {"(h100|b200).mma.e...\\.f32", 16, 25, "RZ-FP32", -133, 4},
      {"(h100|b200).mma.e...\\.f16", 16, 25, "RNE-FP16", -22, 4},
      {"(b200.tcgen05|rtxpro6000.mma).(mx_)?e...\\.f32", 32, 25, "RZ-FP32", -133, 20},
      {"b200.tcgen05.e...\\.f16", 32, 25, "RNE-FP16", -133, 5},
      {"rtxpro6000.mma.e...\\.f16", 32, 25, "RNE-FP16", -22, 5},
      {"(b200.tcgen05|rtxpro6000.mma).(mx|nv)f4.f32", 64, 35, "RZ-FP32", -139, 4},
      {"(a100|h100|b200).mma.f64.f64", 1, 0, "RNE-FP64", 0, 3},
      {"mi...\\.mfma.f64.f64", 1, 0, "RNE-FP64", 0, 2},
      {"mi...\\.mfma.f32.f32", 1, 0, "RNE-FP32", 0, 3},
      {"mi100.mfma.bf16.f32", 2, 0, "RNE-FP32", 0, 1},
      {"mi100.mfma.f16.f32", 4, 0, "RNE-FP32", 0, 1},
      {"mi210.mfma.bf16.f32", 2, 0, "RNE-FP32", 0, 1},
      {"mi210.mfma(_1k.b|.)f16.f32", 4, 0, "RNE-FP32", 0, 2},
      {"mi300.mfma.xf32.f32", 4, 24, "RNE-FP32", 0, 1},
      {"mi300.mfma.b?f16.f32", 8, 24, "RNE-FP32", 0, 2},
      {"mi300.mfma.e...fnuz.f32", 16, 24, "RNE-FP32", 0, 2},
      {"x86.*", 2, 0, "RNE-FP32", 0, 3},
  };
  std::size_t seen = 0;
  for (const Row& row : rows) {
    int units = 0;
    for (const MatrixUnit& unit : matrix_units()) {
      if (!std::regex_match(std::string(unit.name), std::regex(row.pattern))) continue;
      ++units, ++seen;
      EXPECT_EQ(unit.fan_in, row.fan_in) << unit.name;
      EXPECT_EQ(unit.fraction_bits, row.fraction_bits) << unit.name;
      EXPECT_EQ(to_string(unit.conversion), row.conversion) << unit.name;
      EXPECT_EQ(unit.zero_exponent, row.zero_exponent) << unit.name;
      const bool cdna3 = unit.name.starts_with("mi300") && unit.fraction_bits == 24;
      EXPECT_EQ(unit.final_bits, cdna3 ? 31 : 0) << unit.name;
    }
    EXPECT_EQ(units, row.units) << row.pattern;
  }
  EXPECT_EQ(seen, matrix_units().size());
}

std::string complaint(std::string_view text) {
  const Result<MatrixUnit> unit = parse_matrix_unit(text);
  return unit ? "" : unit.error().message;
}

TEST(MatrixUnitNames, OptionsAreParsedAndPrinted) {
  const Result<MatrixUnit> unit = parse_matrix_unit("a2.f16.f16(zero_exponent=-20)");
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->zero_exponent, -20);
  EXPECT_EQ(to_string(*unit), "a100.mma.f16.f16(zero_exponent=-20)");
  EXPECT_EQ(to_string(*parse_matrix_unit("a100.f16.f16(zero_exponent=-21)")), "a100.mma.f16.f16");
  const Result<MatrixUnit> two = parse_matrix_unit(
      "mi300.mfma.xf32.f32(operand_rounding=nearest_ties_away,final_rounding_down=no)");
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->final_rounding_down);
  EXPECT_EQ(two->operand_rounding, OperandRounding::nearest_ties_away);
  const Result<MatrixUnit> amx = parse_matrix_unit("x86.tdpbf16ps.bf16.f32(accumulators=1)");
  ASSERT_TRUE(amx);
  EXPECT_EQ(amx->addend, Addend::first);
}

TEST(MatrixUnitNames, ErrorsNameWhatIsAccepted) {
  EXPECT_EQ(complaint("h100.mma.f16.f23"),
            "no matrix unit is called 'h100.mma.f16.f23'; accepted are the names of kvsim kernels "
            "--units, such as h100.mma.f16.f32; did you mean h100.mma.f16.f32?");
  EXPECT_EQ(complaint("a100.f16.f16(zero_exponent=-19)"),
            "zero_exponent of a100.mma.f16.f16 is '-19'; accepted are -21 and -20");
  EXPECT_EQ(complaint("a100.f16.f16(fan_in=4)"),
            "a100.mma.f16.f16 has no option 'fan_in=4'; accepted are zero_exponent= -21 and -20");
  EXPECT_EQ(complaint("a100.f16.f32(zero_exponent=-20)"),
            "a100.mma.f16.f32 has no open parameter; a100.mma.f16.f32 is accepted without "
            "'zero_exponent=-20'");
  EXPECT_EQ(
      complaint("a100.f16.f16(zero_exponent=-20"),
      "'a100.f16.f16(zero_exponent=-20' does not end with ')'; a100.mma.f16.f16(option=value) "
      "is accepted");
  EXPECT_FALSE(complaint("").empty());
  EXPECT_FALSE(complaint(std::string(5000, 'x')).empty());
}

}  // namespace
}  // namespace kvsim
