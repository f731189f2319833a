// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/attention_plan.h"

#include <cmath>
#include <cstddef>

namespace kvsim::decoder {

AttentionPlan plan_attention(const OperatorSetup& setup, const PassRows& rows,
                             const LayerPosition& layer) {
  const DecoderShape& shape = setup.shape;
  AttentionPlan plan;
  plan.first_query = std::clamp<std::int64_t>(rows.padding - rows.first, 0, rows.count);
  plan.queries = rows.count - plan.first_query;
  plan.first_key = rows.padding;
  plan.keys = rows.end() - rows.padding;
  plan.window = layer.window;
  plan.soft_cap = shape.attention_soft_cap;
  plan.scale = shape.attention_scale;
  switch (setup.plant) {
    case Plant::mask_missing:
      plan.causal = false;
      break;
    case Plant::causal_leak:
      plan.leaks = plan.queries > 1;
      break;
    case Plant::window_off_by_one:
      if (plan.window > 0) ++plan.window;
      break;
    case Plant::soft_cap_missing:
      plan.soft_cap = 0;
      break;
    case Plant::scale_doubled:
      plan.scale =
          2 * (plan.scale > 0 ? plan.scale : 1 / std::sqrt(static_cast<double>(shape.head_dim)));
      break;
    default:
      break;
  }
  return plan;
}

AttentionPlan with_masked_padding(AttentionPlan plan) {
  plan.masked_keys = plan.first_key;
  plan.keys += plan.first_key;
  plan.first_key = 0;
  return plan;
}

std::vector<std::int64_t> planned_positions(const OperatorSetup& setup, const PassRows& rows) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(rows.count));
  const bool is_padded = rows.padding > 0 && rows.first > 0;
  const bool counts_rows =
      rows.positions.empty() || (setup.plant == Plant::pad_positions && is_padded);
  const bool too_many = setup.plant == Plant::position_plus_one && rows.first > 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    positions[i] = counts_rows ? rows.first + static_cast<std::int64_t>(i) : rows.positions[i];
    if (too_many) ++positions[i];
  }
  return positions;
}

bool is_planted_into_cache(const OperatorSetup& setup, const PassRows& rows) {
  return rows.first > 0 &&
         (setup.plant == Plant::swapped_heads || setup.plant == Plant::stale_cache_entry);
}

std::int64_t planned_scores(const AttentionPlan& plan) {
  std::int64_t scores = 0;
  for (std::int64_t i = 0; i < plan.queries; ++i) {
    const std::int64_t position = plan.keys - plan.queries + i;
    const std::int64_t end = plan.causal ? position + 1 : plan.keys;
    const std::int64_t begin =
        plan.window > 0 ? std::max<std::int64_t>(0, position - plan.window + 1) : 0;
    scores += end - begin;
  }
  return scores;
}

}  // namespace kvsim::decoder
