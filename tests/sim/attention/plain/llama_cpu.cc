// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/llama_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "softfloat/formats.h"

namespace kvsim::plain {
namespace {

float dot(const std::vector<float>& q, const std::vector<float>& k) {
  std::array<std::array<float, 8>, 4> a{};
  const std::size_t whole = q.size() / 32 * 32;
  for (std::size_t i = 0; i < whole; ++i) {
    float& lane = a[i / 8 % 4][i % 8];
    lane = std::fma(k[i], q[i], lane);
  }
  std::array<float, 8> l{};
  for (std::size_t i = 0; i < 8; ++i) l[i] = (a[0][i] + a[2][i]) + (a[1][i] + a[3][i]);
  std::array<float, 4> x{};
  for (std::size_t i = 0; i < 4; ++i) x[i] = l[i] + l[i + 4];
  auto sum = static_cast<double>((x[0] + x[1]) + (x[2] + x[3]));
  for (std::size_t i = whole; i < q.size(); ++i) sum += static_cast<double>(k[i] * q[i]);
  return static_cast<float>(sum);
}

struct State {
  float m = -infinity;
  float s = 0;
  std::vector<float> v;
};

State walk(const Problem& p, std::int64_t head, std::int64_t i, std::int64_t first,
           std::int64_t last) {
  State st;
  st.v.assign(static_cast<std::size_t>(p.head_dim), 0.0F);
  const softfloat::Format accumulator =
      p.storage == softfloat::binary16 ? softfloat::binary16 : softfloat::binary32;
  const auto in_half = [](std::span<const float> numbers) {
    std::vector<float> half;
    for (const float x : numbers) half.push_back(rounded(softfloat::binary16, x));
    return half;
  };
  const float scale = p.soft_cap > 0 ? p.scale() / p.soft_cap : p.scale();
  const std::vector<float> q = in_half(p.query(head, i));
  for (std::int64_t j = first; j < last; ++j) {
    if (!p.sees(i, j)) continue;
    float score = dot(q, in_half(p.key(head, j))) * scale;
    if (p.soft_cap > 0) score = p.soft_cap * tanh_f(score);
    float ms = 1;
    float vs = 1;
    if (score > st.m) {
      ms = exp_f(st.m - score);
      st.m = score;
      for (float& x : st.v) x = rounded(accumulator, x * ms);
    } else {
      vs = exp_f(score - st.m);
    }
    for (std::size_t d = 0; d < st.v.size(); ++d) {
      st.v[d] = rounded(accumulator, std::fma(p.value(head, j)[d], vs, st.v[d]));
    }
    st.s = std::fma(st.s, ms, vs);
  }
  return st;
}

void merge(State& total, const State& part) {
  float ms = 1;
  float vs = 1;
  if (part.m > total.m) {
    ms = exp_f(total.m - part.m);
    total.m = part.m;
  } else {
    vs = exp_f(part.m - total.m);
  }
  for (std::size_t d = 0; d < total.v.size(); ++d) {
    const float scaled = part.v[d] * vs;
    total.v[d] = std::fma(total.v[d], ms, scaled);
  }
  const float scaled = part.s * vs;
  total.s = std::fma(total.s, ms, scaled);
}

}  // namespace

Result llama_cpu(const Problem& p) {
  Result result;
  const bool threads = p.cpu_threads > 1 && p.query_len == 1 && p.kv_len >= 512;
  const std::int64_t chunk = threads ? ceil_div(p.kv_len, p.cpu_threads) : p.kv_len;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    for (std::int64_t i = 0; i < p.query_len; ++i) {
      State total;
      bool any = false;
      for (std::int64_t first = 0; first < p.kv_len; first += chunk) {
        const State part = walk(p, head, i, first, std::min(first + chunk, p.kv_len));
        if (part.m == -infinity) continue;
        if (any) {
          merge(total, part);
        } else {
          total = part;
        }
        any = true;
      }
      const float inverse = 1.0F / total.s;
      for (std::size_t d = 0; d < static_cast<std::size_t>(p.head_dim); ++d) {
        result.out.push_back(any ? total.v[d] * inverse : 0.0F);
      }
      result.lse.push_back(any ? total.m + log_f(total.s) : -infinity);
    }
  }
  if (threads) result.splits = p.cpu_threads;
  return result;
}

}  // namespace kvsim::plain
