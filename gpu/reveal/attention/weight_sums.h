// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "sim/order.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// How the sum of p over the keys, by which outputs are divided, is added.
struct WeightFindings {
  std::optional<AdditionTree> tree;  ///< keys as terms
  std::vector<Order> orders;         ///< of the grammar with these additions, the simplest first
  std::string why_not;               ///< empty where there is a tree
};

/// By half-ulp absorption (absorption_tree): one key's p is 1, two are 0.75 · 2^−24, all others
/// hardly anything, and the value of the first key alone is 1, so that its output is 1 ÷ sum. The
/// last query of every head asks a question of its own, its score in an element of its own. It
/// takes binary32 outputs: others do not show the last bit of the sum. More than `most_calls` are
/// not made. Errors: those of the back end.
[[nodiscard]] Result<WeightFindings> find_weights(AttentionCalls& calls, std::int64_t most_calls,
                                                  std::uint64_t seed = 1);

}  // namespace kvsim::gpu
