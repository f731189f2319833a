// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/torch_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "softfloat/formats.h"
#include "tests/sim/exp_plain.h"
#include "tests/sim/linear_oracle.h"

namespace kvsim::plain {

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

float serial_dot(std::span<const float> a, std::span<const float> b, float start) {
  float sum = start;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float product = a[k] * b[k];
    sum = sum + product;
  }
  return sum;
}

test::OneOutput one_output(std::span<const float> a, std::span<const float> b, const Place& at) {
  test::OneOutput o;
  o.x.assign(a.begin(), a.end());
  o.w.assign(b.begin(), b.end());
  o.rows = at.rows;
  o.row = at.row;
  o.outputs = at.columns;
  o.column = at.column;
  return o;
}

namespace {

float four_lane_dot(std::span<const float> a, std::span<const float> b) {
  std::array<float, 4> lanes{};
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float product = a[k] * b[k];
    lanes[k % 4] = lanes[k % 4] + product;
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/// One accumulator of `width` lanes over whole vectors, halved, then the tail.
float vector_sum(const std::vector<float>& terms, std::size_t width) {
  std::vector<float> lanes(width, 0.0F);
  const std::size_t whole = terms.size() / width * width;
  for (std::size_t i = 0; i < whole; ++i) lanes[i % width] = lanes[i % width] + terms[i];
  for (std::size_t half = width / 2; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  float sum = lanes[0];
  for (std::size_t i = whole; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

/// A bfloat16 product of one query: groups of four, then from the last key down.
float dot_in_fours(std::span<const float> a, std::span<const float> b, float start) {
  std::vector<float> products;
  for (std::size_t k = 0; k < a.size(); ++k) products.push_back(a[k] * b[k]);
  float sum = start;
  std::size_t k = 0;
  for (; k + 4 <= products.size(); k += 4) {
    sum = sum + ((products[k] + products[k + 2]) + (products[k + 1] + products[k + 3]));
  }
  for (std::size_t last = products.size(); last > k; --last) sum = sum + products[last - 1];
  return sum;
}

/// MKL's product of bfloat16 matrices held to AVX2, in binary32.
float avx2_bfloat16_dot(const test::OneOutput& o) {
  if (o.rows == 1 || o.outputs == 1) return test::lane_sum(o, 4, 0);
  if (o.rows < 4 || o.outputs < 12) {
    return test::lane_sum(o, test::place_at_edge(o.column, o.outputs) > 0 ? 8 : 4, 0);
  }
  return test::many_rows_sum(o);
}

/// MKL's product of binary16 matrices, in binary32, under every setting.
float half_dot(const test::OneOutput& o) {
  if (o.rows < 4 || o.outputs < 12) {
    return test::lane_sum(o, test::place_at_edge(o.column, o.outputs) > 0 ? 8 : 4, 0);
  }
  return test::many_rows_sum(o);
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
  std::int64_t first_query = 0;
  std::int64_t queries = 0;  ///< in the block of queries
};

/// q·k of query i and key j, in a block.
float score(const Problem& p, bool avx2, const KeyBlock& block, std::span<const float> q,
            std::span<const float> k, const std::array<std::int64_t, 2>& at) {
  const test::OneOutput o = one_output(
      q, k, {block.queries, at[0] - block.first_query, block.length, at[1] - block.first});
  if (p.storage == softfloat::binary16) return half_dot(o);
  if (!avx2) {
    const bool lanes = block.queries < 4 || block.length < 12;
    return lanes ? four_lane_dot(q, k) : blocked_dot(q, k, nullptr);
  }
  return p.storage == softfloat::binary32 ? test::torch_avx2_float32(o) : avx2_bfloat16_dot(o);
}

void visit(const Problem& p, bool avx2, std::array<std::int64_t, 2> query, const KeyBlock& block,
           State& st) {
  const auto [head, i] = query;
  const std::size_t width = avx2 ? 8 : 16;
  const bool single = p.storage == softfloat::binary32;
  std::vector<float> scores;
  float m = st.m;
  for (std::int64_t j = block.first; j < block.first + block.length; ++j) {
    const std::span<const float> q = p.query(head, i);
    const std::span<const float> k = p.key(head, j);
    const float dot = score(p, avx2, block, q, k, {i, j});
    float s = dot * (p.soft_cap > 0 ? p.scale() / p.soft_cap : p.scale());
    if (p.soft_cap > 0) s = p.soft_cap * tanh_f(s);
    scores.push_back(p.sees(i, j) ? s : -infinity);
    m = std::max(m, scores.back());
  }
  if (m == -infinity) return;
  std::vector<float> e;
  const std::size_t whole = scores.size() / width * width;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const float x = scores[j] - m;
    if (j >= whole) {
      e.push_back(exp_f(x));
    } else {
      e.push_back(single ? exp_u20(x) : fexp_u20(x));
    }
  }
  const float r = oracle::plain_libm_expf(st.m - m);
  st.l = std::fma(r, st.l, vector_sum(e, width));
  for (float& x : e) x = rounded(p.storage, x);
  std::vector<float> column(e.size());
  for (std::size_t d = 0; d < st.o.size(); ++d) {
    for (std::size_t j = 0; j < column.size(); ++j) {
      column[j] = p.value(head, block.first + static_cast<std::int64_t>(j))[d];
    }
    const float start = st.first ? 0.0F : st.o[d] * r;
    if (p.storage == softfloat::bfloat16 && block.queries == 1) {
      st.o[d] = dot_in_fours(e, column, start);
    } else if (block.queries < 4 || p.head_dim < 12) {
      st.o[d] = serial_dot(e, column, start);
    } else {
      st.o[d] = blocked_dot(e, column, &start);
    }
  }
  st.m = m;
  st.first = false;
}

Result flash(const Problem& p, bool avx2) {
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
          const KeyBlock block{key, std::min<std::int64_t>(512, p.kv_len - key), first,
                               last - first};
          bool seen = false;
          for (std::int64_t row = first; row < last; ++row) {
            for (std::int64_t j = key; j < key + block.length; ++j) seen |= p.sees(row, j);
          }
          if (seen) visit(p, avx2, {head, i}, block, state);
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

}  // namespace

Result torch_cpu(const Problem& p) { return flash(p, false); }

Result torch_cpu_avx2(const Problem& p) { return flash(p, true); }

}  // namespace kvsim::plain
