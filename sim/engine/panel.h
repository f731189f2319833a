// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/engine/numbers.h"
#include "sim/engine/simd_level.h"

/// Parts of a matrix as floats, for what does not read codes.
namespace kvsim::engine {

/// Part of a matrix of numbers: rows first_row … of columns first_column …
struct PanelSource {
  NumberPointer numbers;  ///< numbers[k × stride + j], or numbers[j × stride + k]
  std::int64_t stride = 0;
  bool transposed = false;     ///< the latter
  std::int64_t first_row = 0;  ///< k
  std::int64_t rows = 0;
  std::int64_t first_column = 0;  ///< j
  std::int64_t columns = 0;
};

/// to[i] = from[i], 0 ≤ i < count.
void read_numbers(NumberPointer from, std::int64_t count, float* to, SimdLevel level);

/// to[k × to_stride + j], k and j counted from the first row and column.
void copy_panel(const PanelSource& from, float* to, std::int64_t to_stride, SimdLevel level);

}  // namespace kvsim::engine
