// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "sim/attention/problem.h"
#include "sim/attention_shape.h"
#include "sim/inputs.h"
#include "softfloat/format.h"

namespace kvsim {

/// The numbers of one attention layer, row-major: q [query_heads, query_len, head_dim], k and v
/// [kv_heads, kv_len, head_dim]. All finite.
struct AttentionNumbers {
  AttentionShape shape;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
};

/// What a layer does to its scores and which format it stores: the same for every kernel.
struct AttentionLayer {
  softfloat::Format storage;
  AttentionMask mask;
  float scale = 0;  ///< factor of q·k; 0: 1 ÷ √head_dim
};

/// Synthetic numbers of `format`: those of generate_attention(). Its precision is at most 24 bits.
[[nodiscard]] AttentionNumbers make_attention_numbers(InputKind kind, std::uint64_t seed,
                                                      const AttentionShape& shape,
                                                      const softfloat::Format& format);

/// The queries first … last of the layer, as a call that comes when the cache ends with the last of
/// them: with the keys up to that one.
[[nodiscard]] AttentionNumbers part_of_sequence(const AttentionNumbers& numbers, std::int64_t first,
                                                std::int64_t last);

/// The last `queries` queries, on all keys.
[[nodiscard]] AttentionNumbers last_queries(const AttentionNumbers& numbers, std::int64_t queries);

/// K and V copied for every query head: multi-head attention that computes the same.
[[nodiscard]] AttentionNumbers repeat_heads(const AttentionNumbers& numbers);

/// The problem that a kernel is given. Points into `numbers`, which must outlive it.
[[nodiscard]] AttentionProblem attention_problem(const AttentionNumbers& numbers,
                                                 const AttentionLayer& layer,
                                                 const AttentionLaunch& launch);

}  // namespace kvsim
