// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/state_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "sim/decoder/formats.h"
#include "softfloat/mutants.h"

namespace kvsim {

Result<bool> check_block(const StateShape& shape, std::int64_t held_rows, const StateBlock& block) {
  if (block.layer < 0 || block.layer >= shape.layers) {
    return Error{ErrorKind::usage, fmt::format("state of layer {}; accepted: 0 to {}", block.layer,
                                               shape.layers - 1)};
  }
  if (block.first_row < 0 || block.rows < 1 || block.rows > held_rows - block.first_row) {
    return Error{
        ErrorKind::usage,
        fmt::format("{} rows of state from row {} on; accepted: one or more of the {} rows "
                    "that the cache holds",
                    block.rows, block.first_row, held_rows)};
  }
  return true;
}

Result<bool> check_block_numbers(const StateShape& shape, const StateBlock& block,
                                 std::span<const double> numbers) {
  const std::int64_t size = shape.kv_heads * block.rows * shape.head_dim;
  if (std::ssize(numbers) != size) {
    return Error{ErrorKind::usage,
                 fmt::format("{} numbers for {} heads, {} rows and {} dimensions; accepted: {}",
                             numbers.size(), shape.kv_heads, block.rows, shape.head_dim, size)};
  }
  return check_numbers(shape.format, numbers);
}

std::vector<double> row_major(const StateShape& shape, const StateBlock& block,
                              std::span<const double> numbers) {
  if (mutant_is_on(Mutant::patched_heads_in_turn)) return {numbers.begin(), numbers.end()};
  std::vector<double> result(numbers.size());
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::copy_n(numbers.begin() + (head * block.rows + row) * shape.head_dim, shape.head_dim,
                  result.begin() + (row * shape.kv_heads + head) * shape.head_dim);
    }
  }
  return result;
}

}  // namespace kvsim
