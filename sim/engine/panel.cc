// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/panel.h"

#include <algorithm>
#include <vector>

namespace kvsim::engine {

void read_numbers(NumberPointer from, std::int64_t count, float* to, SimdLevel) {
  switch (from.code()) {
    case NumberCode::binary32:
      std::copy_n(from.floats(), count, to);
      return;
    case NumberCode::bfloat16:
      std::transform(from.codes(), from.codes() + count, to, bfloat16_number);
      return;
    case NumberCode::binary16:
      std::transform(from.codes(), from.codes() + count, to, binary16_number);
      return;
  }
}

void copy_panel(const PanelSource& from, float* to, std::int64_t to_stride, SimdLevel level) {
  if (!from.transposed) {
    for (std::int64_t k = 0; k < from.rows; ++k) {
      const std::int64_t at = (from.first_row + k) * from.stride + from.first_column;
      read_numbers(from.numbers + at, from.columns, to + k * to_stride, level);
    }
    return;
  }
  std::vector<float> column(static_cast<std::size_t>(from.rows));
  for (std::int64_t j = 0; j < from.columns; ++j) {
    const std::int64_t at = (from.first_column + j) * from.stride + from.first_row;
    read_numbers(from.numbers + at, from.rows, column.data(), level);
    for (std::int64_t k = 0; k < from.rows; ++k) {
      to[k * to_stride + j] = column[static_cast<std::size_t>(k)];
    }
  }
}

}  // namespace kvsim::engine
