// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/check_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "gpu/operators.h"
#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "sim/philox.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// 0 … n − 1 shuffled: neighbours are the pairs that cancel.
std::vector<std::int64_t> shuffled(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int64_t> order(index(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const std::uint64_t draw = philox_bits(seed, 9, static_cast<std::uint64_t>(i));
    std::swap(order[index(i)], order[index(i) + draw % static_cast<std::uint64_t>(n - i)]);
  }
  return order;
}

/// The second of each pair becomes `factor` times the first, in every vector.
void pair_terms(std::span<float> vectors, const std::vector<std::int64_t>& order, float factor) {
  const std::size_t n = order.size();
  for (std::size_t row = 0; row + n <= vectors.size(); row += n) {
    for (std::size_t k = 0; k + 1 < n; k += 2) {
      vectors[row + index(order[k + 1])] = factor * vectors[row + index(order[k])];
    }
  }
}

/// The second of each pair of keys becomes `factor` times the first.
void pair_keys(std::span<float> head, std::int64_t head_dim, const std::vector<std::int64_t>& order,
               float factor) {
  for (std::size_t k = 0; k + 1 < order.size(); k += 2) {
    for (std::int64_t i = 0; i < head_dim; ++i) {
      head[index(order[k + 1] * head_dim + i)] = factor * head[index(order[k] * head_dim + i)];
    }
  }
}

void cancel_attention(const Check& check, std::vector<Tensor>& inputs, std::uint64_t seed) {
  // Products of about 2^22 round to halves in binary32, and their sums, scaled by 1 ÷ √d, to the
  // order of 1.
  constexpr float large = 0x1p11F;
  const std::int64_t group = check.heads / check.kv_heads;
  const std::vector<std::int64_t> channels = shuffled(check.head_dim, seed);
  const std::vector<std::int64_t> keys = shuffled(check.keys, seed + 1);
  const std::int64_t q_size = group * check.queries * check.head_dim;
  const std::int64_t kv_size = check.keys * check.head_dim;
  for (std::int64_t head = 0; head < check.kv_heads; ++head) {
    const auto part = [&](Tensor& tensor, std::int64_t size) {
      return std::span(tensor.values).subspan(index(head * size), index(size));
    };
    const std::span<float> q = part(inputs[0], q_size);
    const std::span<float> k = part(inputs[1], kv_size);
    if (head % 2 == 0) {
      pair_terms(q, channels, 1);
      pair_terms(k, channels, -1);
      std::ranges::transform(q, q.begin(), [](float x) { return large * x; });
      std::ranges::transform(k, k.begin(), [](float x) { return large * x; });
    }
    if (head % 2 == 1 || check.kv_heads == 1) {
      if (head % 2 == 1) pair_keys(k, check.head_dim, keys, 1);
      pair_keys(part(inputs[2], kv_size), check.head_dim, keys, -1);
    }
  }
}

void cancel(const Check& check, std::vector<Tensor>& inputs, std::uint64_t seed) {
  if (check.is_attention()) return cancel_attention(check, inputs, seed);
  const std::vector<std::int64_t> order = shuffled(check.terms, seed);
  const bool is_product = check.operation == "linear";
  pair_terms(inputs[0].values, order, is_product ? 1.0F : -1.0F);
  if (is_product) pair_terms(inputs[1].values, order, -1);
}

}  // namespace

std::string_view to_string(CheckData data) {
  return data == CheckData::gaussian ? "gaussian" : "cancel";
}

bool has_data(const Check& check, CheckData data) {
  return data == CheckData::gaussian || check.is_attention() || check.operation == "linear" ||
         check.operation == "sum" || check.operation == "mean";
}

Result<std::vector<Tensor>> check_data(const Check& check, CheckData data, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  const bool is_wide =
      check.operation == "softmax" || check.operation == "silu" || check.operation == "gelu-tanh";
  const float spread = is_wide ? 4 : 1;
  for (auto& shape : input_shapes(check)) {
    Tensor tensor = zero_tensor(check.format, std::move(shape));
    std::vector<float> drawn(tensor.values.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const auto number = static_cast<float>(normal(seed, 1 + inputs.size(), i));
      drawn[i] = spread * (check.operation == "rsqrt" ? std::fabs(number) : number);
    }
    const auto rounded = round_values(check.format, drawn, tensor.values);
    if (!rounded) return rounded.error();
    inputs.push_back(std::move(tensor));
  }
  if (data == CheckData::cancel) cancel(check, inputs, seed);
  return inputs;
}

}  // namespace kvsim::gpu
