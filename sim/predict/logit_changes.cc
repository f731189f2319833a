// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/logit_changes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/normal_quantile.h"
#include "sim/parallel.h"
#include "sim/predict/running_bound.h"
#include "sim/predict/streams.h"
#include "sim/random_weights.h"
#include "sim/sum_tree.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

// Tokens whose rows of the output matrix are made at once.
constexpr std::int64_t tokens_at_once = 256;

/// The state ÷ its root mean square, rounded to storage.
Result<std::vector<float>> normalized(const LogitOptions& options, std::span<const float> state) {
  double sum = 0;
  for (const float x : state) sum += static_cast<double>(x) * static_cast<double>(x);
  const double mean = sum / static_cast<double>(state.size());
  const double factor = 1 / std::sqrt(mean + static_cast<double>(options.norm_epsilon));
  std::vector<float> out;
  out.reserve(state.size());
  for (const float x : state) out.push_back(static_cast<float>(static_cast<double>(x) * factor));
  const Result<bool> rounded = round_values(options.storage, out, out, options.engine.level);
  if (!rounded) return rounded.error();
  return out;
}

/// The rows of tokens first … first + count − 1 of the output matrix, `stride` numbers apart.
Result<bool> fill_rows(const LogitOptions& options, std::int64_t terms, std::int64_t stride,
                       std::int64_t first, std::span<float> rows) {
  RandomWeights weights;
  weights.seed = options.seed;
  weights.stream = streams::output_matrix | std::uint64_t{1} << 63;
  weights.storage = options.storage;
  weights.deviation =
      static_cast<float>(options.logit_deviation / std::sqrt(static_cast<double>(terms)));
  return fill_random_weights(weights, first * stride, rows, options.engine);
}

/// Rows begin at a multiple of 4 numbers, as the generator asks.
std::int64_t row_stride(std::int64_t terms) { return (terms + 3) / 4 * 4; }

/// A kernel's tree for one output, and its accumulator.
struct LogitTree {
  SumTree tree;
  softfloat::Format accumulator;
};

Result<LogitTree> tree_of(const LogitOptions& options, const SingleOperator& matrix,
                          const LinearKernel& kernel, std::int64_t rows, std::int64_t terms) {
  const auto plan =
      plan_linear(kernel, {rows, matrix.outputs, terms, options.storage, matrix.multiprocessors});
  if (!plan) return plan.error();
  const LinearColumns& columns = plan->columns.front();
  auto tree = build_sum_tree(columns.order, terms);
  if (!tree) return tree.error();
  return LogitTree{std::move(*tree), plan->rule->accumulator};
}

}  // namespace

double logit_deviation(double top_logit, std::int64_t vocabulary) {
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(2, vocabulary));
  const double quantile = share < 0.5 ? -normal_quantile(share) : 1.0;
  return top_logit / quantile;
}

Result<std::vector<LogitChange>> logit_changes(const LogitOptions& options,
                                               std::span<const float> on,
                                               std::span<const float> off) {
  const auto a = normalized(options, on);
  if (!a) return a.error();
  const auto b = normalized(options, off);
  if (!b) return b.error();
  const auto terms = static_cast<std::int64_t>(on.size());
  std::vector<double> change(on.size());
  for (std::size_t i = 0; i < on.size(); ++i) {
    change[i] = static_cast<double>((*a)[i]) - static_cast<double>((*b)[i]);
  }
  const std::int64_t stride = row_stride(terms);
  const std::int64_t tokens = 2 * options.trials;
  std::vector<double> changes(index(tokens));
  std::vector<float> rows(index(stride * std::min(tokens, tokens_at_once)));
  for (std::int64_t first = 0; first < tokens; first += tokens_at_once) {
    const std::int64_t count = std::min(tokens_at_once, tokens - first);
    const Result<bool> filled =
        fill_rows(options, terms, stride, first, std::span(rows).first(index(count * stride)));
    if (!filled) return filled.error();
    parallel_for(count, options.engine.threads, [&](std::int64_t token) {
      double sum = 0;
      for (std::int64_t i = 0; i < terms; ++i) {
        sum += static_cast<double>(rows[index(token * stride + i)]) * change[index(i)];
      }
      changes[index(first + token)] = sum;
    });
  }
  std::vector<LogitChange> pairs;
  pairs.reserve(index(options.trials));
  for (std::size_t i = 0; i + 1 < changes.size(); i += 2) {
    pairs.push_back({changes[i], changes[i + 1]});
  }
  return pairs;
}

Result<std::optional<double>> single_operator_bound(const LogitOptions& options,
                                                    const SingleOperator& matrix,
                                                    std::span<const float> state) {
  const auto normed = normalized(options, state);
  if (!normed) return normed.error();
  const auto terms = static_cast<std::int64_t>(state.size());
  const std::vector<double> a(normed->begin(), normed->end());
  std::vector<LogitTree> trees;
  for (const auto& [kernel, rows] :
       {std::pair{matrix.on, matrix.on_rows}, std::pair{matrix.off, matrix.off_rows}}) {
    auto tree = tree_of(options, matrix, *kernel, rows, terms);
    if (!tree) return tree.error();
    trees.push_back(std::move(*tree));
  }
  const std::int64_t stride = row_stride(terms);
  std::vector<float> rows(index(2 * stride));
  double largest = 0;
  for (std::int64_t pair = 0; pair < matrix.pairs; ++pair) {
    const Result<bool> filled = fill_rows(options, terms, stride, 2 * pair, rows);
    if (!filled) return filled.error();
    double moved = 0;
    for (std::int64_t token = 0; token < 2; ++token) {
      const auto row = std::span(rows).subspan(index(token * stride), index(terms));
      const std::vector<double> b(row.begin(), row.end());
      for (const LogitTree& each : trees) {
        const auto bound = running_bound(each.tree, options.storage, each.accumulator, a, b);
        if (!bound) return std::optional<double>();
        moved += *bound;
      }
    }
    largest = std::max(largest, moved);
  }
  return std::optional<double>(largest);
}

}  // namespace kvsim
