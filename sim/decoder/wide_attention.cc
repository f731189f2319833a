// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/wide_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/exp.h"
#include "sim/parallel.h"
#include "sim/predict/exact_attention.h"

namespace kvsim::decoder {
namespace {

/// One query of one head over keys and values [keys][head_dim].
struct WideRow {
  const double* q = nullptr;
  const double* k = nullptr;
  const double* v = nullptr;
  std::int64_t begin = 0;  ///< keys that it sees
  std::int64_t end = 0;
};

void attend_row(const AttentionPlan& plan, std::int64_t d, const WideRow& row, double* out) {
  const double scale = plan.scale > 0 ? plan.scale : 1 / std::sqrt(static_cast<double>(d));
  std::vector<double> p;
  p.reserve(static_cast<std::size_t>(row.end - row.begin));
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t key = row.begin; key < row.end; ++key) {
    const double* k = row.k + key * d;
    double score = 0;
    for (std::int64_t i = 0; i < d; ++i) score += row.q[i] * k[i];
    score *= scale;
    if (plan.soft_cap > 0) {
      score = plan.soft_cap * tanh_reference(score / plan.soft_cap).high;
    }
    p.push_back(score);
    largest = std::max(largest, score);
  }
  double sum = 0;
  for (double& x : p) sum += x = exp_reference(x - largest).high;
  std::fill_n(out, d, 0.0);
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double* v = row.v + (row.begin + static_cast<std::int64_t>(j)) * d;
    for (std::int64_t i = 0; i < d; ++i) out[i] += p[j] * v[i];
  }
  for (std::int64_t i = 0; i < d; ++i) out[i] /= sum;
}

}  // namespace

std::vector<double> attend_binary64(const OperatorSetup& setup, const PassRows& rows,
                                    const AttentionPlan& plan, const CacheLayer& cache,
                                    std::span<const double> query) {
  const DecoderShape& shape = setup.shape;
  const std::int64_t d = shape.head_dim;
  std::vector<double> k =
      cache.cache->read_double(cache.layer, KvPart::key, plan.first_key, plan.keys);
  std::vector<double> v =
      cache.cache->read_double(cache.layer, KvPart::value, plan.first_key, plan.keys);
  plant_into_cache<double>(setup, rows, plan, k);
  plant_into_cache<double>(setup, rows, plan, v);
  std::vector<double> out(query.size());
  parallel_for(shape.query_heads, setup.engine.threads, [&](std::int64_t head) {
    const std::int64_t kv_head = head / (shape.query_heads / shape.kv_heads);
    for (std::int64_t i = 0; i < plan.queries; ++i) {
      const std::int64_t position = plan.keys - plan.queries + i;
      const std::int64_t place = (i * shape.query_heads + head) * d;
      WideRow row{query.data() + place, k.data() + kv_head * plan.keys * d,
                  v.data() + kv_head * plan.keys * d, 0, plan.keys};
      const std::int64_t seen = position + (plan.leaks && i + 1 < plan.queries ? 1 : 0);
      if (plan.causal) row.end = seen + 1;
      if (plan.window > 0) row.begin = std::max<std::int64_t>(0, seen - plan.window + 1);
      attend_row(plan, d, row, out.data() + place);
    }
  });
  return out;
}

}  // namespace kvsim::decoder
