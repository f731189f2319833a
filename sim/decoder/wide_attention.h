// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <vector>

#include "sim/decoder/attention_plan.h"
#include "sim/decoder/row_operators.h"

namespace kvsim::decoder {

/// Attention in binary64 over a cache, query [plan.queries][query_heads · head_dim]; the result has
/// the same shape. Each query is computed by itself: how rows are grouped makes no difference.
[[nodiscard]] std::vector<double> attend_binary64(const OperatorSetup& setup, const PassRows& rows,
                                                  const AttentionPlan& plan,
                                                  const CacheLayer& cache,
                                                  std::span<const double> query);

}  // namespace kvsim::decoder
