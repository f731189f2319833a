// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/output_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/flip/bound_plan.h"
#include "sim/order_names.h"
#include "sim/predict/running_bound.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::int64_t multiprocessors_of(const LinearKernel& kernel) {
  return std::max<std::int64_t>(1, kernel.multiprocessors);
}

/// The order of an output, or of the first row where rows have orders of their own.
const Order& order_of(const LinearPlan& plan, std::int64_t output) {
  const std::int64_t column = plan.rule->exchanged ? 0 : output;
  for (const LinearColumns& columns : plan.columns) {
    if (column < columns.first + columns.count) return columns.order;
  }
  return plan.columns.back().order;
}

}  // namespace

Result<OutputHead> OutputHead::make(std::string_view kernel, const HeadShape& shape) {
  const LinearKernel* const row = find_linear_kernel(kernel);
  if (row == nullptr) {
    return Error{ErrorKind::usage,
                 fmt::format("linear kernel {}: unknown; kvsim kernels lists those that are "
                             "accepted",
                             order_names::quoted(kernel))};
  }
  const LinearShape sizes{.rows = shape.launch_rows,
                          .outputs = head_outputs,
                          .terms = shape.terms,
                          .storage = shape.storage,
                          .multiprocessors = multiprocessors_of(*row)};
  auto plan = plan_linear(*row, sizes);
  if (!plan) return plan.error();
  OutputHead head(*row, shape, *std::move(plan));
  for (std::size_t token = 0; token < 2; ++token) {
    Sum& sum = head.sums_[token];
    sum.order = order_of(head.plan_, static_cast<std::int64_t>(token));
    if (unit_of(sum.order)) {
      auto tree = build_sum_tree(sum.order, shape.terms);
      if (!tree) return tree.error();
      sum.tree = *std::move(tree);
    } else if (head.plan_.rule->leading_modulus > 0) {
      const auto errors = SumErrors::of_linear(*row, sizes);
      if (!errors) return errors.error();
      sum.relative = errors->relative;
    }
  }
  const std::vector<float> zeros(static_cast<std::size_t>(2 * shape.terms));
  const auto state = std::span(zeros).first(static_cast<std::size_t>(shape.terms));
  const std::array<double, 2> logits = head.logits(state, zeros);
  if (logits[0] != 0 || !std::isfinite(head.bound(state, zeros, logits))) {
    return Error{ErrorKind::usage,
                 fmt::format("linear kernel {}: no bound on its error is known", row->name)};
  }
  return head;
}

std::array<double, 2> OutputHead::logits(std::span<const float> state,
                                         std::span<const float> tokens, SimdLevel level) const {
  std::array<float, 2> result{};
  const Result<bool> done = apply_linear(*kernel_,
                                         {.rows = 1,
                                          .outputs = 2,
                                          .terms = shape_.terms,
                                          .storage = shape_.storage,
                                          .multiprocessors = multiprocessors_of(*kernel_),
                                          .launch_rows = shape_.launch_rows,
                                          .launch_outputs = head_outputs,
                                          .x = state.data(),
                                          .x_stride = shape_.terms,
                                          .w = tokens.data(),
                                          .w_stride = shape_.terms,
                                          .w_by_outputs = true},
                                         result.data(), 2, {.threads = 1, .level = level});
  if (!done) return {nan, nan};
  return {static_cast<double>(result[0]), static_cast<double>(result[1])};
}

double OutputHead::sum_bound(const Sum& sum, std::span<const float> state,
                             std::span<const float> row) const {
  const LinearRule& rule = *plan_.rule;
  if (sum.relative > 0) {
    double absolute = 0;
    for (std::size_t k = 0; k < state.size(); ++k) {
      absolute += std::abs(static_cast<double>(state[k]) * static_cast<double>(row[k]));
    }
    return outward(sum.relative * absolute);
  }
  if (sum.tree) {
    const std::vector<double> a(state.begin(), state.end());
    const std::vector<double> b(row.begin(), row.end());
    return running_bound(*sum.tree, shape_.storage, rule.accumulator, a, b).value_or(no_bound);
  }
  std::array<float, 1> ignored{};
  std::array<double, 1> bound{};
  const Result<bool> done = sum_columns({.order = sum.order,
                                         .product = rule.product,
                                         .input = shape_.storage,
                                         .accumulator = rule.accumulator,
                                         .terms = shape_.terms,
                                         .columns = 1,
                                         .stride = 1,
                                         .a = state.data(),
                                         .b = row.data()},
                                        ignored, bound);
  return done ? bound[0] : no_bound;
}

double OutputHead::bound(std::span<const float> state, std::span<const float> tokens,
                         const std::array<double, 2>& logits) const {
  const RoundingUnits output(plan_.output);
  double total = 0;
  for (std::size_t token = 0; token < 2; ++token) {
    total += sum_bound(sums_[token], state, tokens.subspan(token * state.size(), state.size()));
    // The logit of a format as narrow as the sum's is the sum.
    if (plan_.output != plan_.rule->accumulator) total += rounding_error(output, logits[token]);
  }
  return std::isnan(total) ? no_bound : outward(total);
}

}  // namespace kvsim::fuzz
