// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/engine.h"
#include "run/score_rule.h"
#include "softfloat/result.h"

/// What an attention kernel may never hold as a whole: the scores of a query and its weights.
namespace kvsim::experiments {

/// Of one query over the keys that it sees, computed in binary64 from the query and the keys that
/// an engine made: what they say is a difference of these, not of the kernel's own scores.
struct AttentionScores {
  std::int64_t heads = 0;       ///< of queries
  std::int64_t keys = 0;        ///< that it sees
  std::vector<double> scores;   ///< [heads][keys], scaled and capped
  std::vector<double> weights;  ///< [heads][keys], softmax of each head's scores

  [[nodiscard]] std::span<const double> scores_of(std::int64_t head) const {
    return std::span(scores).subspan(static_cast<std::size_t>(head * keys),
                                     static_cast<std::size_t>(keys));
  }
};

/// `query`: [heads][head_dim] behind RoPE; `keys`: [kv_heads][rows][head_dim], the query's own row
/// last. Errors (usage): sizes that do not fit, what is not finite.
[[nodiscard]] Result<AttentionScores> attention_scores(const ScoreRule& rule,
                                                       const StateShape& shape,
                                                       std::span<const double> query,
                                                       std::span<const double> keys);

}  // namespace kvsim::experiments
