// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>

#include "sim/decoder.h"

namespace kvsim {
namespace {

/// Memory: one matrix, and the rows of each decoder.
Result<bool> check_memory(const DecoderOptions& options) {
  constexpr std::int64_t most_weights = std::int64_t{1} << 28;
  constexpr std::int64_t most_numbers = std::int64_t{1} << 27;
  const DecoderShape& shape = options.shape;
  const std::int64_t query = shape.query_heads * shape.head_dim;
  const std::int64_t largest = shape.hidden * std::max(shape.ffn, query);
  if (largest > most_weights) {
    return Error{
        ErrorKind::usage,
        fmt::format(
            "a decoder of hidden {}, ffn {} and {} query heads of {}: a weight matrix of {} "
            "numbers; accepted: at most {} (1 GiB)",
            shape.hidden, shape.ffn, shape.query_heads, shape.head_dim, largest, most_weights)};
  }
  const std::int64_t row =
      3 * shape.hidden + 2 * query + 2 * shape.kv_heads * shape.head_dim + 2 * shape.ffn;
  if ((options.prefix + 1) * row > most_numbers) {
    return Error{ErrorKind::usage,
                 fmt::format("a prefix of {} in a decoder of this size; accepted: at most {}",
                             options.prefix, most_numbers / row - 1)};
  }
  return true;
}

}  // namespace

Result<bool> check_decoder(const DecoderOptions& options) {
  Result<bool> check = check_shape(options.shape);
  if (!check) return check;
  constexpr std::int64_t longest = std::int64_t{1} << 20;
  if (options.prefix < 1 || options.prefix > longest || options.layers < 0) {
    return Error{ErrorKind::usage,
                 fmt::format("a decoder of prefix {} and {} layers; accepted: a prefix of 1 to {}, "
                             "layers from 0 (all)",
                             options.prefix, options.layers, longest)};
  }
  return check_memory(options);
}

}  // namespace kvsim
