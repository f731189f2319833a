// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "sim/attention_shape.h"
#include "sim/double_double.h"

namespace kvsim {

/// The numbers of one attention layer, row-major: q [query_heads, query_len, head_dim], k and v
/// [kv_heads, kv_len, head_dim]. All finite.
struct AttentionNumbers {
  AttentionShape shape;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
};

/// What is done to the scores besides the sum, and which keys a query sees.
struct ExactAttentionOptions {
  float scale = 0;          ///< factor of q·k; 0: 1 ÷ √head_dim, to about 100 bits
  float soft_cap = 0;       ///< scores become cap · tanh(score ÷ cap); 0: none
  std::int64_t window = 0;  ///< a query sees its own key and the window − 1 before; 0: all before
};

/// Causal attention without rounding errors: sums exact, functions to about 100 bits.
class ExactAttention {
 public:
  /// Keeps a copy of K and V, and reads q of `numbers`, which must outlive it.
  ExactAttention(const AttentionNumbers& numbers, const ExactAttentionOptions& options);

  /// The outputs of query `query` of query head `head`, as [head_dim] numbers of about 100 bits.
  [[nodiscard]] std::vector<DoubleDouble> row(std::int64_t head, std::int64_t query) const;

 private:
  const AttentionNumbers& numbers_;
  ExactAttentionOptions options_;
  std::vector<double> k_transposed_;  // [kv_heads, head_dim, kv_len]
  std::vector<double> v_;
};

/// The hyperbolic tangent of x, with an absolute error below 2^−98.
[[nodiscard]] DoubleDouble tanh_reference(DoubleDouble x);

}  // namespace kvsim
