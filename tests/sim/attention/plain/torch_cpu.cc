// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/torch_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "softfloat/formats.h"

namespace kvsim::plain {
namespace {

float four_lane_dot(std::span<const float> a, std::span<const float> b) {
  std::array<float, 4> lanes{};
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float product = a[k] * b[k];
    lanes[k % 4] = lanes[k % 4] + product;
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

float serial_dot(std::span<const float> a, std::span<const float> b, float start) {
  float sum = start;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float product = a[k] * b[k];
    sum = sum + product;
  }
  return sum;
}

/// One accumulator of 16 lanes over whole vectors, halved, then the tail.
float vector_sum(const std::vector<float>& terms) {
  std::array<float, 16> lanes{};
  const std::size_t whole = terms.size() / 16 * 16;
  for (std::size_t i = 0; i < whole; ++i) lanes[i % 16] = lanes[i % 16] + terms[i];
  for (std::size_t width = 8; width >= 1; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  float sum = lanes[0];
  for (std::size_t i = whole; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

struct State {
  float m = -infinity;
  float l = 0;
  std::vector<float> o;
  bool first = true;
};

struct KeyBlock {
  std::int64_t first = 0;
  std::int64_t length = 0;
  bool few_rows = false;  ///< fewer than 4 queries in the block of queries
};

void visit(const Problem& p, std::int64_t head, std::int64_t i, const KeyBlock& block, State& st) {
  const bool single = p.storage == softfloat::binary32;
  std::vector<float> scores;
  float m = st.m;
  for (std::int64_t j = block.first; j < block.first + block.length; ++j) {
    const std::span<const float> q = p.query(head, i);
    const std::span<const float> k = p.key(head, j);
    const bool lanes = block.few_rows || block.length < 12;
    const float dot = lanes ? four_lane_dot(q, k) : blocked_dot(q, k, nullptr);
    float s = dot * (p.soft_cap > 0 ? p.scale() / p.soft_cap : p.scale());
    if (p.soft_cap > 0) s = p.soft_cap * tanh_f(s);
    scores.push_back(p.sees(i, j) ? s : -infinity);
    m = std::max(m, scores.back());
  }
  if (m == -infinity) return;
  std::vector<float> e;
  const std::size_t whole = scores.size() / 16 * 16;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const float x = scores[j] - m;
    if (j >= whole) {
      e.push_back(exp_f(x));
    } else {
      e.push_back(single ? exp_u20(x) : fexp_u20(x));
    }
  }
  const float r = exp_f(st.m - m);
  st.l = std::fma(r, st.l, vector_sum(e));
  for (float& x : e) x = rounded(p.storage, x);
  std::vector<float> column(e.size());
  for (std::size_t d = 0; d < st.o.size(); ++d) {
    for (std::size_t j = 0; j < column.size(); ++j) {
      column[j] = p.value(head, block.first + static_cast<std::int64_t>(j))[d];
    }
    const float start = st.first ? 0.0F : st.o[d] * r;
    st.o[d] = block.few_rows ? serial_dot(e, column, start) : blocked_dot(e, column, &start);
  }
  st.m = m;
  st.first = false;
}

}  // namespace

float blocked_dot(std::span<const float> a, std::span<const float> b, const float* start) {
  const std::size_t size = a.size() > 192 && a.size() < 384 ? a.size() / 2 : 192;
  float sum = start == nullptr ? 0.0F : *start;
  bool added = start != nullptr;
  for (std::size_t first = 0; first < a.size(); first += size) {
    float block = 0;
    for (std::size_t k = first; k < std::min(first + size, a.size()); ++k) {
      block = std::fma(a[k], b[k], block);
    }
    sum = added ? sum + block : block;
    added = true;
  }
  return sum;
}

Result torch_cpu(const Problem& p) {
  Result result;
  std::int64_t block_queries = 32;
  if (p.query_len >= 192) block_queries = 64;
  if (p.query_len >= 768) block_queries = 256;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    for (std::int64_t first = 0; first < p.query_len; first += block_queries) {
      const std::int64_t last = std::min(first + block_queries, p.query_len);
      for (std::int64_t i = first; i < last; ++i) {
        State state;
        state.o.assign(static_cast<std::size_t>(p.head_dim), 0.0F);
        for (std::int64_t key = 0; key < p.kv_len; key += 512) {
          const KeyBlock block{key, std::min<std::int64_t>(512, p.kv_len - key), last - first < 4};
          bool seen = false;
          for (std::int64_t row = first; row < last; ++row) {
            for (std::int64_t j = key; j < key + block.length; ++j) seen |= p.sees(row, j);
          }
          if (seen) visit(p, head, i, block, state);
        }
        const bool blind = state.m == -infinity;
        const float inverse = 1.0F / state.l;
        for (const float x : state.o) {
          result.out.push_back(blind ? 0.0F : rounded(p.storage, x * inverse));
        }
        result.lse.push_back(blind ? -infinity : state.m + log_f(state.l));
      }
    }
  }
  return result;
}

}  // namespace kvsim::plain
