// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// What a kernel takes, and how much one problem may cost.
struct Limits {
  std::span<const softfloat::Format> storages;
  std::span<const std::int64_t> head_dims;
  bool masks = true;  ///< windows and non-causal layers
  bool soft_cap = true;
  bool decode_only = false;    ///< query_len = 1
  bool splits = false;         ///< forced splits and split sizes
  std::int64_t longest = 700;  ///< kv_len
  std::int64_t most_queries = 40;
  std::int64_t products = 60'000;  ///< heads · query_len · kv_len · head_dim, about
};

/// Problem number `index` of a stream: small, with sizes beside the multiples of tiles, queries
/// that see nothing, groups of 1 to 8 heads, and one of five kinds of numbers: Gaussian, Gaussian
/// with a large range, scores that grow along the keys, K half of which is a negated copy of the
/// other half ("cancel data"), and few distinct small integers.
[[nodiscard]] Problem random_problem(const Limits& limits, std::uint64_t stream,
                                     std::uint64_t index);

/// New numbers of a problem whose sizes were changed.
void redraw_numbers(Problem& problem, std::uint64_t stream, std::uint64_t index);

}  // namespace kvsim::plain
