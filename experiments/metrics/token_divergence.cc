// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/token_divergence.h"

#include <algorithm>
#include <cstddef>

namespace kvsim::metrics {

TokenDivergence token_divergence(std::span<const std::int64_t> first,
                                 std::span<const std::int64_t> second) {
  TokenDivergence result;
  result.first_tokens = static_cast<std::int64_t>(first.size());
  result.second_tokens = static_cast<std::int64_t>(second.size());
  const std::size_t longer = std::max(first.size(), second.size());
  for (std::size_t i = 0; i < longer; ++i) {
    if (i < first.size() && i < second.size() && first[i] == second[i]) continue;
    ++result.differing;
    if (!result.flip_index) result.flip_index = static_cast<std::int64_t>(i);
  }
  if (longer > 0) {
    result.share = static_cast<double>(result.differing) / static_cast<double>(longer);
  }
  return result;
}

}  // namespace kvsim::metrics
