// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/value_sums.h"

#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// e to the minus this is 0 in binary32.
constexpr double lowest_score = 400;

}  // namespace

ValueSums::ValueSums(AttentionCalls& calls, std::vector<std::int64_t> keys)
    : calls_(calls), keys_(std::move(keys)) {
  if (!keys_.empty()) return;
  keys_.resize(index(calls.shape().kv_len));
  std::iota(keys_.begin(), keys_.end(), 0);
}

std::int64_t ValueSums::rows() const {
  const AttentionShape& shape = calls_.shape();
  return (calls_.layer().causal() ? 1 : shape.query_len) * shape.group();
}

std::int64_t ValueSums::columns() const {
  return calls_.shape().kv_heads * calls_.shape().head_dim;
}

std::int64_t output_of_sum(const AttentionLayer& layer, std::int64_t row, std::int64_t column) {
  const AttentionShape& shape = layer.shape;
  const std::int64_t head = column / shape.head_dim * shape.group() + row % shape.group();
  const std::int64_t query = layer.causal() ? shape.query_len - 1 : row / shape.group();
  return (head * shape.query_len + query) * shape.head_dim + column % shape.head_dim;
}

Result<std::vector<float>> ValueSums::compute(std::span<const float> /*left*/,
                                              std::span<const float> right) {
  const AttentionShape& shape = calls_.shape();
  const std::int64_t dim = shape.head_dim;
  AttentionOperands operands = zero_operands(shape);
  if (terms() < shape.kv_len) {
    // The power of two above, a number of every format.
    const double wanted = lowest_score / calls_.layer().scale();
    const float low = std::ldexp(1.0F, std::ilogb(wanted) + 1);
    for (std::size_t i = 0; i < operands.q.size(); i += index(dim)) operands.q[i] = -low;
    for (std::size_t i = 0; i < operands.k.size(); i += index(dim)) operands.k[i] = 1;
    for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
      for (const std::int64_t key : keys_) {
        operands.k[index((head * shape.kv_len + key) * dim)] = 0;
      }
    }
  }
  for (std::int64_t column = 0; column < columns(); ++column) {
    const std::int64_t first = column / dim * shape.kv_len * dim + column % dim;
    for (std::int64_t i = 0; i < terms(); ++i) {
      operands.v[index(first + keys_[index(i)] * dim)] = right[index(column * terms() + i)];
    }
  }
  const auto outputs = calls_.run(std::move(operands));
  if (!outputs) return outputs.error();
  std::vector<float> sums;
  sums.reserve(index(rows() * columns()));
  for (std::int64_t row = 0; row < rows(); ++row) {
    for (std::int64_t column = 0; column < columns(); ++column) {
      sums.push_back((*outputs)[index(output_of_sum(calls_.layer(), row, column))]);
    }
  }
  return sums;
}

}  // namespace kvsim::gpu
