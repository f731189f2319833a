// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/exact_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sim/attention_row.h"
#include "sim/exp.h"
#include "softfloat/index.h"

namespace kvsim {
DoubleDouble tanh_reference(DoubleDouble x) {
  if (x.high < 0) return -tanh_reference(-x);
  if (x.high > 40) return DoubleDouble(1.0);  // 1 − tanh x is below 2^−114
  const DoubleDouble power = exp_reference(scale_by_power_of_two(x, 1));
  return (power - DoubleDouble(1.0)) / (power + DoubleDouble(1.0));
}

ExactAttention::ExactAttention(const AttentionNumbers& numbers, const AttentionLayer& layer)
    : numbers_(numbers), layer_(layer), v_(numbers.v.begin(), numbers.v.end()) {
  const AttentionShape& shape = numbers.shape;
  k_transposed_.resize(numbers.k.size());
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    const std::int64_t base = head * shape.kv_len * shape.head_dim;
    for (std::int64_t j = 0; j < shape.kv_len; ++j) {
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        k_transposed_[index(base + d * shape.kv_len + j)] =
            numbers.k[index(base + j * shape.head_dim + d)];
      }
    }
  }
}

std::vector<DoubleDouble> ExactAttention::row(std::int64_t head, std::int64_t query) const {
  const AttentionShape& shape = numbers_.shape;
  const std::int64_t visible = shape.visible_keys(query);
  const std::int64_t first =
      layer_.mask.window > 0 ? std::max<std::int64_t>(0, visible - layer_.mask.window) : 0;
  const std::int64_t base = head / shape.group() * shape.kv_len * shape.head_dim;
  const auto q_begin = numbers_.q.begin() + static_cast<std::ptrdiff_t>(
                                                (head * shape.query_len + query) * shape.head_dim);
  const std::vector<double> q(q_begin, q_begin + static_cast<std::ptrdiff_t>(shape.head_dim));
  const AttentionRow row{
      .keys = visible - first,
      .head_dim = shape.head_dim,
      .q = q,
      .k_transposed =
          std::span(k_transposed_)
              .subspan(index(base + first), index(shape.kv_len * shape.head_dim - first)),
      .key_stride = shape.kv_len,
      .v = std::span(v_).subspan(index(base + first * shape.head_dim)),
  };
  std::vector<DoubleDouble> scores = exact_scores(row);
  const DoubleDouble root = sqrt(DoubleDouble(static_cast<double>(shape.head_dim)));
  for (DoubleDouble& score : scores) {
    if (layer_.scale != 0) score = score * (root * static_cast<double>(layer_.scale));
    if (layer_.mask.soft_cap != 0) {
      const double cap = layer_.mask.soft_cap;
      score = tanh_reference(score / cap) * cap;
    }
  }
  return exact_values(row, exact_softmax(scores).p);
}

}  // namespace kvsim
