// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "sim/double_double.h"
#include "sim/predict/attention_numbers.h"

namespace kvsim {

/// Attention without rounding errors: sums exact, functions and the scale 1 ÷ √head_dim to about
/// 100 bits. Queries see the keys before them, with a window the last of them; every layer is
/// causal.
class ExactAttention {
 public:
  /// Keeps a copy of K and V, and reads q of `numbers`, which must outlive it.
  ExactAttention(const AttentionNumbers& numbers, const AttentionLayer& layer);

  /// The outputs of query `query` of query head `head`, as [head_dim] numbers of about 100 bits.
  [[nodiscard]] std::vector<DoubleDouble> row(std::int64_t head, std::int64_t query) const;

 private:
  const AttentionNumbers& numbers_;
  AttentionLayer layer_;
  std::vector<double> k_transposed_;  // [kv_heads, head_dim, kv_len]
  std::vector<double> v_;
};

/// The hyperbolic tangent of x, with an absolute error below 2^−98.
[[nodiscard]] DoubleDouble tanh_reference(DoubleDouble x);

}  // namespace kvsim
