// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "softfloat/result.h"

/// What the functions of this folder share in checking their callers and finding their rows.
namespace kvsim::operators {

/// Sizes of a matrix: both 0 or more.
inline Result<bool> check_sizes(std::string_view name, std::int64_t rows, std::int64_t columns) {
  if (rows >= 0 && columns >= 0) return true;
  return Error{ErrorKind::usage, fmt::format("{}: {} rows × {} columns: both must be 0 or more",
                                             name, rows, columns)};
}

/// The row of a table with this name; nullptr if there is none.
template <class Row>
const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace kvsim::operators
