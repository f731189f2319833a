// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify_draw.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "experiments/metrics/drift.h"
#include "experiments/statistics/distributions.h"
#include "sim/inputs.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::experiments {
namespace {

constexpr std::uint64_t seed = 0x66616c73696679;  // "falsify"

void transpose_keys(AttentionDraw& draw) {
  draw.k_transposed.resize(draw.k.size());
  for (std::int64_t key = 0; key < draw.keys; ++key) {
    for (std::int64_t j = 0; j < draw.head_dim; ++j) {
      draw.k_transposed[index(j * draw.keys + key)] = draw.k[index(key * draw.head_dim + j)];
    }
  }
}

}  // namespace

AttentionDraw attention_draw(std::uint64_t number, std::int64_t keys, std::int64_t head_dim) {
  AttentionDraw draw;
  draw.keys = keys;
  draw.head_dim = head_dim;
  draw.q.resize(index(head_dim));
  draw.k.resize(index(keys * head_dim));
  draw.v.resize(index(keys * head_dim));
  std::uint64_t stream = 3 * number;
  for (std::vector<double>* list : {&draw.q, &draw.k, &draw.v}) {
    for (std::size_t i = 0; i < list->size(); ++i) (*list)[i] = normal(seed, stream, i);
    ++stream;
  }
  transpose_keys(draw);
  return draw;
}

AttentionDraw AttentionDraw::first(std::int64_t count) const {
  AttentionDraw part;
  part.keys = count;
  part.head_dim = head_dim;
  part.q = q;
  part.k.assign(k.begin(), k.begin() + count * head_dim);
  part.v.assign(v.begin(), v.begin() + count * head_dim);
  transpose_keys(part);
  return part;
}

std::vector<double> plain_scores(const AttentionDraw& draw) {
  const double root = std::sqrt(static_cast<double>(draw.head_dim));
  std::vector<double> scores(index(draw.keys));
  for (std::int64_t key = 0; key < draw.keys; ++key) {
    double sum = 0;
    for (std::int64_t j = 0; j < draw.head_dim; ++j) {
      sum += draw.q[index(j)] * draw.k[index(key * draw.head_dim + j)];
    }
    scores[index(key)] = sum / root;
  }
  return scores;
}

std::vector<double> plain_softmax(std::span<const double> scores) {
  const double largest = *std::ranges::max_element(scores);
  std::vector<double> p;
  p.reserve(scores.size());
  double sum = 0;
  for (const double score : scores) {
    p.push_back(statistics::exponential(score - largest));
    sum += p.back();
  }
  for (double& each : p) each /= sum;
  return p;
}

std::vector<double> plain_values(const AttentionDraw& draw, std::span<const double> p) {
  std::vector<double> out(index(draw.head_dim));
  for (std::int64_t key = 0; key < draw.keys; ++key) {
    for (std::int64_t j = 0; j < draw.head_dim; ++j) {
      out[index(j)] += p[index(key)] * draw.v[index(key * draw.head_dim + j)];
    }
  }
  return out;
}

double relative_error(std::span<const double> value, std::span<const double> reference) {
  const auto drift = metrics::drift(softfloat::binary64, reference, value);
  return drift ? drift->relative.value_or(0) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kvsim::experiments
