// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <vector>

#include "model/safetensors.h"
#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// Rows of d = c + Σ a[k]·b[k], as codes.
struct DotTensors {
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t scales = 0;                           ///< of one row; 0 without scales
  std::vector<softfloat::Bits> a, b;                ///< [rows, K]
  std::vector<softfloat::Bits> c;                   ///< [rows]
  std::vector<softfloat::Bits> a_scales, b_scales;  ///< [rows, ⌈K ÷ scale_block⌉]

  /// The operands of one row.
  [[nodiscard]] DotOperands row(std::size_t i) const;
};

/// Reads a and b [rows, K] and c [rows], and the scales where the unit has them. Element types must
/// be those of the unit. Errors (usage): a tensor that is missing, of another type or shape, or
/// empty.
[[nodiscard]] Result<DotTensors> read_dot_tensors(const SafetensorsFile& file,
                                                  const MatrixUnit& unit);

}  // namespace kvsim
