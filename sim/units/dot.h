// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>

#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"

namespace kvsim {

/// The operands of one output element, d = c + Σ a[k]·b[k].
struct DotOperands {
  std::span<const softfloat::Bits> a;  ///< K codes of MatrixUnit::operand
  std::span<const softfloat::Bits> b;  ///< K codes of MatrixUnit::operand
  softfloat::Bits c = 0;               ///< a code of MatrixUnit::output
  /// Units with scales: one code of MatrixUnit::scale for every scale_block elements, the last one
  /// perhaps for fewer. Empty otherwise.
  std::span<const softfloat::Bits> a_scales = {};
  std::span<const softfloat::Bits> b_scales = {};
};

/// What the unit computes: a code of MatrixUnit::output. A K longer than that of the instruction is
/// a chain of instructions, in increasing k, each taking the result before it as its c. A block
/// that is not full is filled with zeros, as a kernel fills it. K = 0 gives c.
[[nodiscard]] softfloat::Bits unit_dot(const MatrixUnit& unit, const DotOperands& operands);

}  // namespace kvsim
