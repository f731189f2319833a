// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/wide_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/exp.h"
#include "sim/parallel.h"
#include "sim/predict/exact_attention.h"

namespace kvsim::decoder {
namespace {

void attend_row(const DecoderShape& shape, const LayerPosition& layer, const WideTensors& tensors,
                std::int64_t head, std::int64_t token, std::span<double> result) {
  const std::int64_t d = shape.head_dim;
  const std::int64_t kv_head = head / (shape.query_heads / shape.kv_heads);
  const auto kv_row = [&](std::span<const double> matrix, std::int64_t key) {
    return matrix.data() + (key * shape.kv_heads + kv_head) * d;
  };
  const double* q = tensors.query.data() + (token * shape.query_heads + head) * d;
  const double scale =
      shape.attention_scale > 0 ? shape.attention_scale : 1 / std::sqrt(static_cast<double>(d));
  const std::int64_t first =
      layer.window > 0 ? std::max<std::int64_t>(0, token - layer.window + 1) : 0;
  std::vector<double> p;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t key = first; key <= token; ++key) {
    const double* k = kv_row(tensors.key, key);
    double score = 0;
    for (std::int64_t i = 0; i < d; ++i) score += q[i] * k[i];
    score *= scale;
    if (shape.attention_soft_cap > 0) {
      const double cap = shape.attention_soft_cap;
      score = cap * tanh_reference(score / cap).high;
    }
    p.push_back(score);
    largest = std::max(largest, score);
  }
  double sum = 0;
  for (double& x : p) sum += x = exp_reference(x - largest).high;
  double* out = result.data() + (token * shape.query_heads + head) * d;
  std::fill_n(out, d, 0.0);
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double* v = kv_row(tensors.value, first + static_cast<std::int64_t>(j));
    for (std::int64_t i = 0; i < d; ++i) out[i] += p[j] * v[i];
  }
  for (std::int64_t i = 0; i < d; ++i) out[i] /= sum;
}

}  // namespace

void attend_binary64(const DecoderShape& shape, const LayerPosition& layer, std::int64_t tokens,
                     const WideTensors& tensors, std::span<double> out, int threads) {
  parallel_for(shape.query_heads, threads, [&](std::int64_t head) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      attend_row(shape, layer, tensors, head, token, out);
    }
  });
}

}  // namespace kvsim::decoder
