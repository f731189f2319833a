// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// Rows of d = c + Σ a[k]·b[k], as codes.
struct DotTensors {
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t scales = 0;                              ///< of one row; 0 without scales
  std::vector<softfloat::Bits> a, b;                   ///< [rows, K]
  std::vector<softfloat::Bits> c;                      ///< [rows]
  std::vector<softfloat::Bits> a_scales, b_scales;     ///< [rows, ⌈K ÷ scale_block⌉]
  std::optional<std::vector<softfloat::Bits>> expect;  ///< [rows]

  /// The operands of one row.
  [[nodiscard]] DotOperands row(std::size_t i) const;
};

/// Reads a and b [rows, K] and c [rows], the scales where the unit has them, and the tensor
/// `expect` [rows] where it is named. Element types must be those of the unit. Errors: of the
/// reader (file); a tensor that is missing, of another type or shape, or empty (usage).
[[nodiscard]] Result<DotTensors> read_dot_tensors(const std::string& path, const MatrixUnit& unit,
                                                  const std::optional<std::string>& expect);

}  // namespace kvsim
