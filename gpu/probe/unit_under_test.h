// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Probes of matrix units: what one instruction computes, found from results alone.
namespace kvsim::gpu {

/// What must be known of an instruction to give it operands: nothing of how it computes.
struct UnitShape {
  softfloat::Format operand;  ///< of the codes in memory
  softfloat::Format input;    ///< operands are numbers of this format (tf32 in a binary32)
  softfloat::Format output;   ///< of c and d
  int products = 0;           ///< K of one instruction
  softfloat::Format scale;    ///< of block scales
  int scale_block = 0;        ///< elements that share a scale; 0 without scales
};

/// The shape of a row of the table of units.
[[nodiscard]] UnitShape shape_of(const MatrixUnit& unit);

/// The operands of one instruction, as codes.
struct ProbeRow {
  std::vector<softfloat::Bits> a, b;                ///< K each
  std::vector<softfloat::Bits> a_scales, b_scales;  ///< one for scale_block elements
  softfloat::Bits c = 0;
};

/// Something that executes an instruction: a device, or a row of the table of units.
class UnitUnderTest {
 public:
  UnitUnderTest() = default;
  UnitUnderTest(const UnitUnderTest&) = delete;
  UnitUnderTest& operator=(const UnitUnderTest&) = delete;
  virtual ~UnitUnderTest() = default;

  [[nodiscard]] virtual const UnitShape& shape() const = 0;
  /// d of every row, each by an instruction of its own. Errors are those of the device.
  [[nodiscard]] virtual Result<std::vector<softfloat::Bits>> run(
      std::span<const ProbeRow> rows) = 0;
};

/// The simulator's own unit: any row of the table, or one that a test has changed.
class SimulatedUnit final : public UnitUnderTest {
 public:
  explicit SimulatedUnit(const MatrixUnit& unit) : unit_(unit), shape_(shape_of(unit)) {}
  [[nodiscard]] const UnitShape& shape() const override { return shape_; }
  [[nodiscard]] Result<std::vector<softfloat::Bits>> run(std::span<const ProbeRow> rows) override;

 private:
  MatrixUnit unit_;
  UnitShape shape_;
};

/// What a row of the table makes of one row of operands.
[[nodiscard]] softfloat::Bits simulate_row(const MatrixUnit& unit, const ProbeRow& row);

/// Passes everything on and keeps it.
class RecordedUnit final : public UnitUnderTest {
 public:
  explicit RecordedUnit(UnitUnderTest& unit) : unit_(&unit) {}
  [[nodiscard]] const UnitShape& shape() const override { return unit_->shape(); }
  [[nodiscard]] Result<std::vector<softfloat::Bits>> run(std::span<const ProbeRow> rows) override;

  [[nodiscard]] const std::vector<ProbeRow>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<softfloat::Bits>& results() const { return results_; }

 private:
  UnitUnderTest* unit_;
  std::vector<ProbeRow> rows_;
  std::vector<softfloat::Bits> results_;
};

}  // namespace kvsim::gpu
