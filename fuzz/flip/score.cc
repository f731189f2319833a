// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "sim/double_double.h"
#include "sim/engine/columns.h"
#include "sim/engine/matrix.h"
#include "sim/error_bounds.h"
#include "sim/predict/running_bound.h"

namespace kvsim::fuzz {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> widened(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// Both logits of a case of CaseKind::sum in one order: their difference, and its bound.
PathScore sum_path(const CaseShape& shape, std::size_t path, const std::optional<SumTree>& tree,
                   const FlipCase& flip_case) {
  const std::vector<float>& state = flip_case[CaseTensor::state];
  const std::vector<float>& tokens = flip_case[CaseTensor::tokens];
  const std::size_t terms = state.size();
  std::array<float, 2> logits{};
  PathScore score;
  Result<bool> done = true;
  if (tree) {
    done = sum_matrix({.order = shape.orders[path],
                       .product = shape.product,
                       .input = shape.storage,
                       .accumulator = shape.accumulator,
                       .rows = 1,
                       .terms = shape.terms,
                       .columns = 2,
                       .a = state.data(),
                       .a_stride = shape.terms,
                       .b = tokens.data(),
                       .b_stride = shape.terms,
                       .b_transposed = true},
                      logits.data(), 2);
    const std::vector<double> a = widened(state);
    for (std::size_t token = 0; token < 2; ++token) {
      const std::vector<double> b = widened(std::span(tokens).subspan(token * terms, terms));
      score.bound +=
          running_bound(*tree, shape.storage, shape.accumulator, a, b).value_or(no_bound);
    }
  } else {
    std::vector<float> columns(2 * terms);
    for (std::size_t k = 0; k < terms; ++k) {
      columns[2 * k] = tokens[k];
      columns[2 * k + 1] = tokens[terms + k];
    }
    std::array<double, 2> bounds{};
    done = sum_columns({.order = shape.orders[path],
                        .product = shape.product,
                        .input = shape.storage,
                        .accumulator = shape.accumulator,
                        .terms = shape.terms,
                        .columns = 2,
                        .stride = 2,
                        .a = state.data(),
                        .b = columns.data()},
                       logits, bounds);
    score.bound = bounds[0] + bounds[1];
  }
  score.difference = done ? static_cast<double>(logits[0]) - static_cast<double>(logits[1]) : nan;
  return score;
}

/// Σ w·o of outputs as the kernel stored them, where w is the first row less the second: products
/// of floats are exact in binary64, and their sum is good to about 100 bits.
double difference_of_outputs(std::span<const float> outputs, std::span<const float> tokens) {
  DoubleDouble sum;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double output = outputs[i];
    sum = sum + output * static_cast<double>(tokens[i]);
    sum = sum + -(output * static_cast<double>(tokens[i + outputs.size()]));
  }
  return sum.high;
}

}  // namespace

double FlipScore::margin() const { return std::abs(exact); }

bool FlipScore::is_finite() const {
  return std::isfinite(exact) && std::isfinite(reference_error) &&
         std::isfinite(paths[0].difference) && std::isfinite(paths[1].difference) &&
         std::isfinite(bound());
}

bool FlipScore::flips() const {
  return is_finite() && paths[0].token() != paths[1].token() && margin() > reference_error;
}

Result<FlipScorer> FlipScorer::make(const CaseShape& shape) {
  const Result<bool> checked = check_shape(shape);
  if (!checked) return checked.error();
  FlipScorer scorer(shape);
  const FlipCase empty = empty_case(shape);
  for (const std::size_t path : {path_on, path_off}) {
    if (shape.kind == CaseKind::sum) {
      if (unit_of(shape.orders[path])) {
        Result<SumTree> tree = build_sum_tree(shape.orders[path], shape.terms);
        if (!tree) return tree.error();
        scorer.trees_[path] = *std::move(tree);
      }
      continue;
    }
    scorer.kernels_[path] = find_attention_kernel(shape.kernels[path].kernel);
    const AttentionProblem problem = scorer.problem(empty, path);
    const auto tried = run_attention(*scorer.kernels_[path], problem);
    if (!tried) return tried.error();
    scorer.splits_[path] = tried->splits;
    auto bound = PathBound::make(*scorer.kernels_[path], problem);
    if (!bound) return bound.error();
    scorer.bounds_.push_back(*std::move(bound));
    const std::string& head_name = shape.kernels[path].head;
    if (head_name.empty()) continue;
    if (output_format(*scorer.kernels_[path], shape.storage) != shape.storage) {
      return Error{ErrorKind::usage,
                   fmt::format("attention kernel {}: its outputs are no numbers of {}, so that no "
                               "linear kernel takes them",
                               shape.kernels[path].kernel, softfloat::format_name(shape.storage))};
    }
    auto head = OutputHead::make(head_name, {.storage = shape.storage,
                                             .terms = shape.state_size(),
                                             .launch_rows = problem.shape.query_len});
    if (!head) return head.error();
    scorer.heads_[path] = *std::move(head);
  }
  if (shape.kind == CaseKind::sum) {
    const FlipScore zero = scorer.score(empty);
    if (!std::isfinite(zero.paths[0].difference) || !std::isfinite(zero.paths[1].difference)) {
      return Error{ErrorKind::usage, "these formats and orders cannot be summed"};
    }
    if (!std::isfinite(zero.bound())) {
      return Error{ErrorKind::usage, "no bound on the error of these orders is known"};
    }
  }
  return scorer;
}

AttentionProblem FlipScorer::problem(const FlipCase& flip_case, std::size_t path) const {
  const KernelPath& kernel = shape_.kernels[path];
  AttentionProblem problem;
  problem.shape = shape_.attention;
  problem.shape.query_len = kernel.prefill ? shape_.attention.kv_len : 1;
  problem.first_query = problem.shape.query_len - 1;
  problem.storage = shape_.storage;
  problem.launch.splits = kernel.splits;
  problem.q = flip_case[CaseTensor::q].data();
  problem.k = flip_case[CaseTensor::k].data();
  problem.v = flip_case[CaseTensor::v].data();
  return problem;
}

std::vector<float> FlipScorer::outputs(const FlipCase& flip_case, std::size_t path, SimdLevel level,
                                       AttentionObserver* observer) const {
  AttentionOptions options;
  options.engine = {.threads = 1, .level = level};
  const AttentionProblem given = problem(flip_case, path);
  auto result = observer == nullptr ? run_attention(*kernels_[path], given, options)
                                    : observe_attention(*kernels_[path], given, level, *observer);
  if (!result) return {};
  return std::move(result->out);
}

FlipScore FlipScorer::score(const FlipCase& flip_case) const {
  return shape_.kind == CaseKind::sum ? score_sum(flip_case) : score_attention(flip_case);
}

FlipScore FlipScorer::score_sum(const FlipCase& flip_case) const {
  FlipScore score;
  const ExactDifference exact = exact_sum_difference(flip_case);
  score.exact = exact.value.high;
  score.reference_error = exact.error;
  for (const std::size_t path : {path_on, path_off}) {
    score.paths[path] = sum_path(shape_, path, trees_[path], flip_case);
  }
  score.growth = score.bound();
  return score;
}

FlipScore FlipScorer::score_attention(const FlipCase& flip_case) const {
  FlipScore score;
  const ExactAttentionCase exact = exact_attention_case(flip_case);
  score.exact = exact.difference.value.high;
  score.reference_error = exact.difference.error;
  for (const ExactHead& head : exact.heads) {
    score.growth = std::max(score.growth, head.largest_score);
  }
  const std::vector<float>& tokens = flip_case[CaseTensor::tokens];
  for (const std::size_t path : {path_on, path_off}) {
    const std::vector<float> out = outputs(flip_case, path);
    if (out.empty()) {
      score.paths[path] = {nan, no_bound};
      continue;
    }
    const double bound = bounds_[path](exact, out, tokens);
    if (const std::optional<OutputHead>& head = heads_[path]) {
      const std::array<double, 2> both = head->logits(out, tokens);
      score.paths[path] = {both[0] - both[1], bound + head->bound(out, tokens, both)};
      continue;
    }
    score.paths[path] = {difference_of_outputs(out, tokens), bound};
  }
  return score;
}

std::optional<std::array<double, 2>> FlipScorer::logits(std::span<const float> outputs,
                                                        const FlipCase& flip_case, std::size_t path,
                                                        SimdLevel level) const {
  const std::optional<OutputHead>& head = heads_[path];
  if (!head) return std::nullopt;
  return head->logits(outputs, flip_case[CaseTensor::tokens], level);
}

double FlipScorer::difference(std::span<const float> outputs, const FlipCase& flip_case,
                              std::size_t path) const {
  if (outputs.empty()) return nan;
  const auto both = logits(outputs, flip_case, path);
  if (both) return (*both)[0] - (*both)[1];
  return difference_of_outputs(outputs, flip_case[CaseTensor::tokens]);
}

std::int64_t FlipScorer::splits(std::size_t path) const {
  if (shape_.kind == CaseKind::attention) return splits_[path];
  std::int64_t splits = 1;
  for (const OrderItem& item : shape_.orders[path].items) {
    if (item.kind == OrderKind::split) splits *= item.size;
  }
  return splits;
}

std::string FlipScorer::path_name(std::size_t path) const {
  if (shape_.kind == CaseKind::sum) return to_string(shape_.orders[path]);
  const KernelPath& kernel = shape_.kernels[path];
  return fmt::format("{}, {}, {}", kernel.kernel,
                     kernel.prefill ? fmt::format("last of {} queries", shape_.attention.kv_len)
                                    : std::string("1 query"),
                     splits_[path] == 1 ? std::string("not split")
                                        : fmt::format("{} splits", splits_[path])) +
         (kernel.head.empty() ? std::string() : fmt::format(", logits by {}", kernel.head));
}

}  // namespace kvsim::fuzz
