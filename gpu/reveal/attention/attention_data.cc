// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/attention_data.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "sim/philox.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// 0 … n − 1 shuffled: neighbours are a pair.
std::vector<std::int64_t> shuffled(std::int64_t n, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::int64_t> order(index(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const std::uint64_t draw = philox_bits(seed, stream, static_cast<std::uint64_t>(i));
    std::swap(order[index(i)], order[index(i) + draw % static_cast<std::uint64_t>(n - i)]);
  }
  return order;
}

/// Rows of `size` numbers: the second of each pair of rows becomes `factor` times the first.
void pair_rows(std::span<float> rows, std::int64_t size, const std::vector<std::int64_t>& order,
               float factor) {
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
    for (std::int64_t j = 0; j < size; ++j) {
      rows[index(order[i + 1] * size + j)] = factor * rows[index(order[i] * size + j)];
    }
  }
}

/// The same of the numbers of each row, and all of them times `scale`.
void pair_elements(std::span<float> rows, const std::vector<std::int64_t>& order, float factor,
                   float scale) {
  for (std::size_t row = 0; row < rows.size(); row += order.size()) {
    const std::span<float> numbers = rows.subspan(row, order.size());
    pair_rows(numbers, 1, order, factor);
    for (float& x : numbers) x *= scale;
  }
}

}  // namespace

AttentionOperands attention_data(const AttentionLayer& layer, std::uint64_t seed,
                                 std::uint64_t number) {
  // Products of about 2^22 round to halves in binary32; their sums, scaled, are of the order of 1.
  constexpr float large = 0x1p11F;
  const AttentionShape& shape = layer.shape;
  AttentionOperands data = zero_operands(shape);
  std::uint64_t stream = 8 * number;
  for (std::vector<float>* const values : {&data.q, &data.k, &data.v}) {
    ++stream;
    for (std::size_t i = 0; i < values->size(); ++i) {
      (*values)[i] = static_cast<float>(normal(seed, stream, i));
    }
    static_cast<void>(round_values(layer.format, *values, *values));
  }
  const std::vector<std::int64_t> keys = shuffled(shape.kv_len, seed, stream + 1);
  const std::vector<std::int64_t> elements = shuffled(shape.head_dim, seed, stream + 2);
  if (number % 3 == 0) {
    const std::int64_t size = shape.kv_len * shape.head_dim;
    for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
      const auto part = [&](std::vector<float>& values) {
        return std::span(values).subspan(index(head * size), index(size));
      };
      pair_rows(part(data.k), shape.head_dim, keys, 1);
      pair_rows(part(data.v), shape.head_dim, keys, -1);
    }
  } else if (number % 3 == 1) {
    pair_elements(data.q, elements, 1, large);
    pair_elements(data.k, elements, -1, large);
  }
  return data;
}

}  // namespace kvsim::gpu
