// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/attention_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "experiments/statistics/distributions.h"
#include "run/divergence.h"
#include "sim/predict/exact_attention.h"

namespace kvsim::experiments {
namespace {

double score_of(const ScoreRule& rule, std::span<const double> query, const double* key) {
  double sum = 0;
  for (const double each : query) sum += each * *key++;
  const double scaled = rule.scale * sum;
  return rule.soft_cap > 0 ? rule.soft_cap * tanh_reference(scaled / rule.soft_cap).high : scaled;
}

}  // namespace

Result<AttentionScores> attention_scores(const ScoreRule& rule, const StateShape& shape,
                                         std::span<const double> query,
                                         std::span<const double> keys) {
  const std::int64_t width = shape.head_dim;
  const std::int64_t heads = std::ssize(query) / width;
  const std::int64_t rows = std::ssize(keys) / (width * shape.kv_heads);
  if (heads < 1 || rows < 1 || heads % shape.kv_heads != 0 || heads * width != std::ssize(query) ||
      rows * width * shape.kv_heads != std::ssize(keys)) {
    return Error{ErrorKind::usage,
                 fmt::format("a query of {} and keys of {} numbers for {} K/V heads of {}",
                             query.size(), keys.size(), shape.kv_heads, width)};
  }
  const std::int64_t first = rule.window > 0 ? std::max<std::int64_t>(0, rows - rule.window) : 0;
  AttentionScores result{.heads = heads, .keys = rows - first, .scores = {}, .weights = {}};
  const auto count = static_cast<std::size_t>(heads * result.keys);
  result.scores.reserve(count);
  result.weights.reserve(count);

  const std::int64_t group = heads / shape.kv_heads;
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto own =
        query.subspan(static_cast<std::size_t>(head * width), static_cast<std::size_t>(width));
    const double* const of_head = keys.data() + head / group * rows * width;
    for (std::int64_t row = first; row < rows; ++row) {
      result.scores.push_back(score_of(rule, own, of_head + row * width));
    }
    const std::span<const double> scores = result.scores_of(head);
    const Result<SoftmaxNormalizer> normalizer = softmax_normalizer(scores);
    if (!normalizer) return normalizer.error();
    for (const double score : scores) {
      result.weights.push_back(statistics::exponential(log_probability(*normalizer, score)));
    }
  }
  return result;
}

}  // namespace kvsim::experiments
