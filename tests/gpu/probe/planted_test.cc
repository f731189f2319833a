// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// A unit that is not what the table says is found out, by the property that was changed.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/probe/probe.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// Probes the changed unit beside the row as it is, without random rows, and gives the properties
/// that do not agree.
std::string contradicted(const MatrixUnit& row, const std::function<void(MatrixUnit&)>& change) {
  MatrixUnit changed = row;
  change(changed);
  SimulatedUnit unit(changed);
  const auto probe = probe_unit(unit, row, {.random_rows = 0});
  if (!probe) return "error: " + probe.error().message;
  if (probe->no_structure) return "no structure";
  std::string names;
  for (const ComparedProperty& one : probe->properties) {
    if (one.agrees == std::optional(false)) names += "[" + one.name + "]";
  }
  EXPECT_EQ(probe->equal(), names.empty() && probe->different == 0);
  return names;
}

bool contradicts(const MatrixUnit& row, const std::function<void(MatrixUnit&)>& change,
                 std::string_view name) {
  return contradicted(row, change).find("[" + std::string(name) + "]") != std::string::npos;
}

bool truncates(const MatrixUnit& row) {
  return row.operation != UnitOperation::fma && row.operation != UnitOperation::ftz_add_mul &&
         row.operation != UnitOperation::e_fdpa;
}

TEST(Planted, OneFractionBitMoreOrLess) {
  int caught = 0;
  for (const MatrixUnit& row : matrix_units()) {
    if (!truncates(row)) continue;
    // What a binary16 result hides of 4- and 6-bit numbers nobody can see.
    if (row.operand.width() <= 6 && row.output == softfloat::binary16) continue;
    for (const int change : {-1, 1}) {
      const auto plant = [&](MatrixUnit& unit) { unit.fraction_bits += change; };
      EXPECT_TRUE(contradicts(row, plant, property::fraction_bits) ||
                  contradicts(row, plant, property::addend_bits))
          << row.name << " F" << change << ": " << contradicted(row, plant);
      ++caught;
    }
  }
  EXPECT_EQ(caught, 2 * 81);
}

TEST(Planted, HalfOrTwiceTheFanIn) {
  for (const MatrixUnit& row : matrix_units()) {
    if (row.operation == UnitOperation::fma || row.operation == UnitOperation::gst_fdpa) continue;
    const auto half = [](MatrixUnit& unit) {
      unit.fan_in /= 2;
      unit.blocks *= 2;
    };
    const bool emulated = row.order == OperandOrder::pairs_of_four;
    const bool pairs = row.operation == UnitOperation::ftz_add_mul;
    if (row.fan_in > 1 && !emulated && !(pairs && row.fan_in == 2)) {
      EXPECT_TRUE(contradicts(row, half, property::structure)) << row.name;
    }
    if (row.blocks > 1 && !emulated && !pairs) {
      const auto twice = [](MatrixUnit& unit) {
        unit.fan_in *= 2;
        unit.blocks /= 2;
      };
      EXPECT_TRUE(contradicts(row, twice, property::structure)) << row.name;
    }
  }
}

TEST(Planted, TheOrderOfAnEmulatedInstruction) {
  for (const MatrixUnit& row : matrix_units()) {
    if (row.order != OperandOrder::pairs_of_four) continue;
    EXPECT_TRUE(contradicts(
        row, [](MatrixUnit& unit) { unit.order = OperandOrder::in_turn; }, property::structure));
    EXPECT_TRUE(contradicts(
        row, [](MatrixUnit& unit) { unit.addend = Addend::first; }, property::structure));
  }
}

TEST(Planted, OutputConversion) {
  for (const MatrixUnit& row : matrix_units()) {
    if (!truncates(row) || row.output != softfloat::binary32 || row.final_bits != 0) continue;
    const bool narrow = row.conversion == OutputConversion::rz_e8m13;
    const auto wrong_width = [&](MatrixUnit& unit) {
      unit.conversion = narrow ? OutputConversion::rz_fp32 : OutputConversion::rz_e8m13;
    };
    EXPECT_TRUE(contradicts(row, wrong_width, property::precision)) << row.name;
    if (row.conversion != OutputConversion::rz_fp32) continue;
    const auto nearest = [](MatrixUnit& unit) { unit.conversion = OutputConversion::rne_fp32; };
    EXPECT_TRUE(contradicts(row, nearest, property::rounding)) << row.name;
  }
}

TEST(Planted, ZeroExponent) {
  int caught = 0;
  for (const MatrixUnit& row : matrix_units()) {
    SimulatedUnit unit(row);
    const auto found = find_properties(unit);
    ASSERT_TRUE(found);
    if (row.final_bits != 0 ||
        find_property(*found, property::zero_exponent).kind != Seen::Kind::number) {
      continue;
    }
    for (const int change : {-1, 1}) {
      EXPECT_TRUE(contradicts(
          row, [&](MatrixUnit& changed) { changed.zero_exponent += change; },
          property::zero_exponent))
          << row.name;
      ++caught;
    }
  }
  EXPECT_EQ(caught, 2 * 33);
  // The two values that sources give for the asynchronous instruction are told apart.
  EXPECT_TRUE(contradicts(
      *find_matrix_unit("h100.wgmma.f16.f16"), [](MatrixUnit& unit) { unit.zero_exponent = -22; },
      property::zero_exponent));
}

TEST(Planted, SmallParts) {
  const auto unit = [](std::string_view name) { return *find_matrix_unit(name); };
  EXPECT_TRUE(contradicts(
      unit("mi300.mfma.bf16.f32"), [](MatrixUnit& row) { row.final_rounding_down = false; },
      property::addend_bits));
  EXPECT_TRUE(contradicts(
      unit("mi300.mfma.bf16.f32"), [](MatrixUnit& row) { row.final_bits = 30; },
      property::addend_bits));
  EXPECT_TRUE(contradicts(
      unit("a100.mma.tf32.f32"),
      [](MatrixUnit& row) { row.operand_rounding = OperandRounding::nearest_ties_away; },
      property::operand));
  EXPECT_TRUE(contradicts(
      unit("a100.mma.f16.f32"), [](MatrixUnit& row) { row.nan_code = 0x7fc00000; }, property::nan));
  EXPECT_TRUE(contradicts(
      unit("x86.vdpbf16ps.bf16.f32"), [](MatrixUnit& row) { row.mode = {}; },
      property::subnormal_operands));
  EXPECT_TRUE(contradicts(
      unit("x86.vdpbf16ps.bf16.f32"), [](MatrixUnit& row) { row.order = OperandOrder::in_turn; },
      property::structure));
  EXPECT_TRUE(contradicts(
      unit("x86.tdpbf16ps.bf16.f32"), [](MatrixUnit& row) { row.accumulators = 1; },
      property::structure));
  EXPECT_TRUE(contradicts(
      unit("mi300.mfma.bf16.f32"), [](MatrixUnit& row) { row.operation = UnitOperation::t_fdpa; },
      property::addend_bits));
  EXPECT_TRUE(contradicts(
      unit("mi100.mfma.bf16.f32"),
      [](MatrixUnit& row) { row.operation = UnitOperation::ftz_add_mul; }, property::structure));
}

/// A device that fails after some rows.
class FailingUnit final : public UnitUnderTest {
 public:
  explicit FailingUnit(std::size_t rows) : left_(rows), unit_(*find_matrix_unit("a100.f16.f32")) {}
  [[nodiscard]] const UnitShape& shape() const override { return unit_.shape(); }
  [[nodiscard]] Result<std::vector<softfloat::Bits>> run(std::span<const ProbeRow> rows) override {
    if (rows.size() > left_) return Error{ErrorKind::file, "the device is gone"};
    left_ -= rows.size();
    return unit_.run(rows);
  }

 private:
  std::size_t left_;
  SimulatedUnit unit_;
};

TEST(Planted, AFailureOfTheDeviceIsHandedOn) {
  const MatrixUnit& row = *find_matrix_unit("a100.f16.f32");
  for (const std::size_t rows : {0U, 200U, 300U, 420U, 600U}) {
    FailingUnit unit(rows);
    const auto probe = probe_unit(unit, row, {.random_rows = 400});
    ASSERT_FALSE(probe) << rows;
    EXPECT_EQ(probe.error().kind, ErrorKind::file);
    EXPECT_EQ(probe.error().message, "the device is gone");
  }
}

/// A unit that answers by no rule.
class RandomUnit final : public UnitUnderTest {
 public:
  [[nodiscard]] const UnitShape& shape() const override { return shape_; }
  [[nodiscard]] Result<std::vector<softfloat::Bits>> run(std::span<const ProbeRow> rows) override {
    std::vector<softfloat::Bits> results;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      results.push_back(state_ >> 32);
    }
    return results;
  }

 private:
  UnitShape shape_ = shape_of(*find_matrix_unit("a100.f16.f32"));
  std::uint64_t state_ = 1;
};

TEST(Planted, AnswersWithoutARuleHaveNoStructure) {
  RandomUnit unit;
  const auto probe = probe_unit(unit, *find_matrix_unit("a100.f16.f32"), {.random_rows = 4});
  ASSERT_TRUE(probe);
  EXPECT_TRUE(probe->no_structure);
  EXPECT_FALSE(probe->equal());
  EXPECT_TRUE(probe->properties.empty());
}

}  // namespace
}  // namespace kvsim::gpu
