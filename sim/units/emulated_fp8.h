// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/units/rows.h"

namespace kvsim::units {

inline constexpr std::string_view emulated_rows =
    "500 hardware rows of arXiv:2512.07004 (2025-12), repeated bit for bit by a rule found from "
    "them; NVIDIA/cutlass issue 1986 (2025-03): not native";
inline constexpr std::string_view emulated_argument =
    "the rule that the same instruction follows with other outputs or on B200; NVIDIA/cutlass "
    "issue 1986 (2025-03): not native";

/// 8-bit mma.sync where the compiler emulates it with 16-bit units: two f16 blocks of 16 take k mod
/// 4 = 0, 1 and k mod 4 = 2, 3; they start from +0, and c is added by one rounded addition.
/// Numbers are converted to binary16 first, exactly: a subnormal becomes normal by that. `unit` is
/// the row of the 16-bit instruction, with the 8-bit format as its input.
[[nodiscard]] constexpr MatrixUnit emulated(MatrixUnit unit) {
  unit.operand = unit.input;
  unit.input = softfloat::binary16;
  unit.order = OperandOrder::pairs_of_four;
  unit.addend = Addend::last;
  if (unit.output == softfloat::binary16) unit.options = hopper_half_options;
  unit.source = emulated_argument;
  unit.note = unit.output == softfloat::binary32
                  ? "emulated by the compiler, another one may do otherwise; hardware rows with "
                    "binary32 output do not show which k a block takes"
                  : "emulated by the compiler, another one may do otherwise";
  return unit;
}

/// The same for a unit whose hardware rows it repeats.
[[nodiscard]] constexpr MatrixUnit emulated_measured(const MatrixUnit& unit) {
  MatrixUnit row = emulated(unit);
  row.source = emulated_rows;
  row.evidence = softfloat::Evidence::measured;
  row.is_default = true;
  return row;
}

}  // namespace kvsim::units
