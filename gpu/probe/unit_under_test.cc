// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/unit_under_test.h"

#include "sim/units/dot.h"

namespace kvsim::gpu {

UnitShape shape_of(const MatrixUnit& unit) {
  UnitShape shape;
  shape.operand = unit.operand;
  // Where 8-bit operands are converted to 16 bits inside, the operands still are of 8 bits.
  shape.input = unit.input.width() < unit.operand.width() ? unit.input : unit.operand;
  shape.output = unit.output;
  shape.products = unit.fan_in * unit.blocks;
  shape.scale = unit.scale;
  shape.scale_block = unit.scale_block;
  return shape;
}

softfloat::Bits simulate_row(const MatrixUnit& unit, const ProbeRow& row) {
  return unit_dot(unit, {row.a, row.b, row.c, row.a_scales, row.b_scales});
}

Result<std::vector<softfloat::Bits>> SimulatedUnit::run(std::span<const ProbeRow> rows) {
  std::vector<softfloat::Bits> results;
  results.reserve(rows.size());
  for (const ProbeRow& row : rows) results.push_back(simulate_row(unit_, row));
  return results;
}

Result<std::vector<softfloat::Bits>> RecordedUnit::run(std::span<const ProbeRow> rows) {
  auto results = unit_->run(rows);
  if (!results) return results;
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  results_.insert(results_.end(), results->begin(), results->end());
  return results;
}

}  // namespace kvsim::gpu
