// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/decoder/launch.h"
#include "sim/decoder/row_operators.h"

/// What attention of one pass sees, planted defects included.
namespace kvsim::decoder {

/// Which rows are computed, and over which keys. Rows of padding see nothing, and no other row sees
/// padding: it is stripped, or masked where the kernel can.
struct AttentionPlan {
  std::int64_t first_query = 0;  ///< row of the pass
  std::int64_t queries = 0;      ///< 0: the pass is all padding
  std::int64_t first_key = 0;    ///< row of the cache
  std::int64_t keys = 0;
  std::int64_t masked_keys = 0;  ///< of these, at the start
  bool causal = true;
  bool leaks = false;  ///< every query but the last sees one key beyond its own
  std::int64_t window = 0;
  double soft_cap = 0;
  double scale = 0;  ///< 0: 1 ÷ √head_dim
};

[[nodiscard]] AttentionPlan plan_attention(const OperatorSetup& setup, const PassRows& rows,
                                           const LayerPosition& layer);

/// The plan for a kernel that masks padding instead of stripping it.
[[nodiscard]] AttentionPlan with_masked_padding(AttentionPlan plan);

/// The position of each row of the pass.
[[nodiscard]] std::vector<std::int64_t> planned_positions(const OperatorSetup& setup,
                                                          const PassRows& rows);

/// How many scores the plan computes, one query head.
[[nodiscard]] std::int64_t planned_scores(const AttentionPlan& plan);

/// Whether plant_into_cache() changes anything.
[[nodiscard]] bool is_planted_into_cache(const OperatorSetup& setup, const PassRows& rows);

/// Plants into keys or values [kv_heads][keys][head_dim] that were read from a cache what the setup
/// asks for.
template <class T>
void plant_into_cache(const OperatorSetup& setup, const PassRows& rows, const AttentionPlan& plan,
                      std::span<T> numbers) {
  if (!is_planted_into_cache(setup, rows)) return;
  const std::int64_t d = setup.shape.head_dim;
  const std::int64_t heads = setup.shape.kv_heads;
  T* const all = numbers.data();
  if (setup.plant == Plant::swapped_heads && heads > 1) {
    std::swap_ranges(all, all + plan.keys * d, all + plan.keys * d);
  }
  const std::int64_t stale = rows.first - 1 - plan.first_key;
  if (setup.plant == Plant::stale_cache_entry && stale > 0) {
    for (std::int64_t head = 0; head < heads; ++head) {
      T* const first = all + head * plan.keys * d;
      std::copy_n(first, d, first + stale * d);
    }
  }
}

}  // namespace kvsim::decoder
