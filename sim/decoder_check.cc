// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

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

Result<bool> check_passes(const DecoderOptions& options) {
  for (const std::vector<std::int64_t>* passes : {&options.on_passes, &options.off_passes}) {
    const std::int64_t rows = std::accumulate(passes->begin(), passes->end(), std::int64_t{0});
    const bool all_positive = std::ranges::all_of(*passes, [](std::int64_t x) { return x > 0; });
    if (passes->empty() || (all_positive && rows == options.prefix + 1)) continue;
    return Error{ErrorKind::usage,
                 fmt::format("a decoder with passes of {} rows over {} tokens; accepted: passes of "
                             "1 row or more, as many rows as tokens",
                             fmt::join(*passes, ", "), options.prefix + 1)};
  }
  return true;
}

Result<bool> check_factors(const DecoderOptions& options) {
  const auto is_size = [](double x) { return x > 0 && std::isfinite(x); };
  const bool are_sizes = std::ranges::all_of(options.branch_factors, [&](const BranchSizes& each) {
    return is_size(each.attention) && is_size(each.mlp) && std::isfinite(each.common);
  });
  const std::int64_t count = std::ssize(options.branch_factors);
  if (are_sizes && (count == 0 || count == options.shape.layers)) return true;
  return Error{ErrorKind::usage,
               fmt::format("{} branch factors of a decoder of {} layers; accepted: none, or finite "
                           "ones above 0 for each layer",
                           count, options.shape.layers)};
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
  check = check_passes(options);
  if (check) check = check_factors(options);
  return check ? check_memory(options) : check;
}

}  // namespace kvsim
