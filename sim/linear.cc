// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/linear.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "sim/engine/matrix.h"
#include "sim/exact_matrix.h"
#include "sim/integers.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Format;

Error usage(std::string message) { return Error{ErrorKind::usage, std::move(message)}; }

/// Share of the multiprocessors that are busy, over all waves of `blocks` thread blocks.
double busy_share(std::int64_t blocks, std::int64_t multiprocessors) {
  const std::int64_t waves = divide_up(blocks, multiprocessors);
  return static_cast<double>(blocks) / static_cast<double>(waves * multiprocessors);
}

std::int64_t splits_by_waves(const LinearKernel& kernel, std::int64_t tiles,
                             std::int64_t term_tiles, std::int64_t multiprocessors) {
  // 4 of 5 multiprocessors busy without a split.
  if (5 * tiles >= 4 * multiprocessors) return 1;
  const std::int64_t most = std::min(
      kernel.split.splits, term_tiles / std::max<std::int64_t>(1, kernel.split.smallest_tiles));
  const auto eligible = [&](std::int64_t splits) {
    return splits == 1 || divide_up(term_tiles, splits) != divide_up(term_tiles, splits - 1);
  };
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    if (eligible(splits)) best = std::max(best, busy_share(tiles * splits, multiprocessors));
  }
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    if (eligible(splits) && busy_share(tiles * splits, multiprocessors) >= 0.85 * best) {
      return splits;
    }
  }
  return 1;
}

const LinearRule* find_rule(const LinearKernel& kernel, const LinearShape& shape) {
  const std::int64_t multiply_adds = shape.rows * shape.outputs * shape.terms;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t of_batch =
      multiply_adds > most / shape.batch ? most : multiply_adds * shape.batch;
  const auto* rule = std::ranges::find_if(kernel.rules, [&](const LinearRule& row) {
                       return row.storage == shape.storage && row.rows.contains(shape.rows) &&
                              row.outputs.contains(shape.outputs) &&
                              row.terms.contains(shape.terms) &&
                              row.multiply_adds.contains(multiply_adds) &&
                              row.batch_multiply_adds.contains(of_batch);
                     }).base();
  return rule == kernel.rules.data() + kernel.rules.size() ? nullptr : rule;
}

std::string storage_names(const LinearKernel& kernel) {
  std::vector<std::string_view> names;
  for (const LinearRule& rule : kernel.rules) {
    const std::string_view name = softfloat::format_name(rule.storage);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The order of one split, and the splits around it.
Result<Order> whole_order(const LinearKernel& kernel, std::string_view inside, std::int64_t terms,
                          std::int64_t splits, const Format& output) {
  std::string text(inside);
  constexpr std::string_view half = "K/2";
  if (const std::size_t at = text.find(half); at != std::string::npos) {
    text.replace(at, half.size(), std::to_string(std::max<std::int64_t>(1, terms / 2)));
  }
  if (splits > 1) {
    std::string rounding;
    switch (kernel.split.reduction) {
      case SplitReduction::parallel:
        break;
      case SplitReduction::rounded:
        rounding = fmt::format(",partials={}", softfloat::format_name(output));
        break;
      case SplitReduction::serial:
        rounding = fmt::format(",running={}", softfloat::format_name(output));
        break;
    }
    text = fmt::format("split({},multiple={}{})/{}", splits, kernel.tile_terms, rounding, text);
  }
  return parse_order(text);
}

bool is_exact(const Order& order) {
  return order.items.size() == 1 && order.items[0].kind == OrderKind::exact;
}

/// The bias, and to it the sums of the blocks of an order blocks(B), one after the other.
Result<bool> add_blocks_to_bias(MatrixProblem matrix, const float* bias, float* out,
                                std::int64_t out_stride, const EngineOptions& options) {
  const std::int64_t terms = matrix.terms;
  const std::int64_t block = matrix.order.items.front().size;
  matrix.order.items.erase(matrix.order.items.begin());
  std::vector<float> sums(static_cast<std::size_t>(matrix.rows * matrix.columns));
  const float* const a = matrix.a;
  const NumberPointer b = matrix.b;
  for (std::int64_t first = 0; first < terms; first += block) {
    matrix.terms = std::min(block, terms - first);
    matrix.a = a + first;
    matrix.b = b + first * (matrix.b_transposed ? 1 : matrix.b_stride);
    const Result<bool> done = sum_matrix(matrix, sums.data(), matrix.columns, options);
    if (!done) return done;
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      const float* const addends = first == 0 ? bias : out + i * out_stride;
      for (std::int64_t j = 0; j < matrix.columns; ++j) {
        out[i * out_stride + j] =
            addends[j] + sums[static_cast<std::size_t>(i * matrix.columns + j)];
      }
    }
  }
  return true;
}

Result<bool> sum_outputs(const LinearProblem& problem, const LinearPlan& plan,
                         const LinearColumns& columns, float* out, std::int64_t out_stride,
                         const EngineOptions& options) {
  MatrixProblem matrix{
      .order = columns.order,
      .product = plan.rule->product,
      .input = problem.storage,
      .accumulator = problem.accumulator.value_or(plan.rule->accumulator),
      .rows = problem.rows,
      .terms = problem.terms,
      .columns = columns.count,
      .a = problem.x,
      .a_stride = problem.x_stride,
      .b = problem.w + columns.first * (problem.w_by_outputs ? problem.w_stride : 1),
      .b_stride = problem.w_stride,
      .b_transposed = problem.w_by_outputs};
  if (is_exact(columns.order)) {
    return exact_matrix(matrix, out + columns.first, out_stride, options);
  }
  if (plan.rule->starts_from_bias && problem.bias != nullptr) {
    return add_blocks_to_bias(matrix, problem.bias + columns.first, out + columns.first, out_stride,
                              options);
  }
  return sum_matrix(matrix, out + columns.first, out_stride, options);
}

/// A layer whose rows and outputs change places: one row, the weights of the one output, and as
/// many outputs as there were rows.
Result<bool> sum_exchanged(const LinearProblem& problem, const LinearPlan& plan, float* out,
                           std::int64_t out_stride, const EngineOptions& options) {
  std::vector<float> weights(static_cast<std::size_t>(problem.terms));
  for (std::int64_t k = 0; k < problem.terms; ++k) {
    weights[static_cast<std::size_t>(k)] =
        problem.w[problem.w_by_outputs ? k : k * problem.w_stride];
  }
  std::vector<float> sums(static_cast<std::size_t>(problem.rows));
  LinearProblem turned = problem;
  turned.rows = 1;
  turned.x = weights.data();
  turned.x_stride = problem.terms;
  turned.w = problem.x;
  turned.w_stride = problem.x_stride;
  turned.w_by_outputs = true;
  for (LinearColumns columns : plan.columns) {
    columns.count = std::min(columns.count, problem.rows - columns.first);
    if (columns.count <= 0) continue;
    const Result<bool> summed =
        sum_outputs(turned, plan, columns, sums.data(), problem.rows, options);
    if (!summed) return summed;
  }
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    out[i * out_stride] = sums[static_cast<std::size_t>(i)];
  }
  return true;
}

/// What follows the sums of one row.
Result<bool> finish_row(const LinearKernel& kernel, const LinearProblem& problem,
                        const LinearPlan& plan, std::int64_t i, std::span<float> row,
                        SimdLevel level) {
  const bool scales = problem.alpha != 1;
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (problem.c != nullptr) {
      const float addend =
          problem.beta * problem.c[i * problem.c_stride + static_cast<std::int64_t>(j)];
      row[j] = std::fma(problem.alpha, row[j], addend);
    } else if (scales) {
      row[j] = problem.alpha * row[j];
    }
  }
  const auto add_bias = [&] {
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] + problem.bias[j];
  };
  const auto round = [&] { return round_values(plan.output, row, row, level); };
  const bool is_added = problem.bias != nullptr && !plan.rule->starts_from_bias;
  if (is_added && !kernel.bias_after_rounding) add_bias();
  Result<bool> rounded = round();
  if (!rounded || !is_added || !kernel.bias_after_rounding) return rounded;
  add_bias();
  return round();
}

}  // namespace

std::int64_t split_count(const LinearKernel& kernel, std::int64_t rows, std::int64_t outputs,
                         std::int64_t terms, std::int64_t multiprocessors) {
  const std::int64_t term_tiles = divide_up(terms, kernel.tile_terms);
  switch (kernel.split.kind) {
    case SplitKind::none:
      return 1;
    case SplitKind::fixed:
      return std::min(kernel.split.splits, term_tiles);
    case SplitKind::waves:
      break;
  }
  const std::int64_t tiles =
      divide_up(rows, kernel.tile_rows) * divide_up(outputs, kernel.tile_outputs);
  return splits_by_waves(kernel, tiles, term_tiles, std::max<std::int64_t>(1, multiprocessors));
}

const LinearKernel* find_linear_kernel(std::string_view name) {
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

Result<LinearPlan> plan_linear(const LinearKernel& kernel, const LinearShape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  for (const std::int64_t size : {shape.rows, shape.outputs, shape.terms}) {
    if (size < 1 || size > most) {
      return usage(
          fmt::format("a linear layer of {} rows, {} outputs and {} terms; accepted: 1 to "
                      "{} of each",
                      shape.rows, shape.outputs, shape.terms, most));
    }
  }
  LinearPlan plan;
  plan.rule = find_rule(kernel, shape);
  if (plan.rule == nullptr) {
    return usage(fmt::format("linear kernel {} with storage format {}; accepted: {}", kernel.name,
                             softfloat::format_name(shape.storage), storage_names(kernel)));
  }
  plan.output = plan.rule->output == Format{} ? shape.storage : plan.rule->output;
  plan.splits = split_count(kernel, shape.rows, shape.outputs, shape.terms, shape.multiprocessors);
  const LinearRule& rule = *plan.rule;
  const std::int64_t outputs = rule.exchanged ? shape.rows : shape.outputs;
  const std::int64_t edge = rule.edge_outputs == 0 ? 0 : outputs % rule.edge_outputs;
  const std::int64_t modulus = rule.leading_modulus;
  const auto add = [&](std::string_view text, std::int64_t first, std::int64_t count,
                       std::int64_t leading) -> Result<bool> {
    if (count == 0) return true;
    Result<Order> order = whole_order(kernel, text, shape.terms, plan.splits, plan.output);
    if (!order) return order.error();
    if (leading > 0) order->items.back().head = leading;
    plan.columns.push_back({first, count, std::move(*order)});
    return true;
  };
  const std::int64_t leading = modulus == 0 ? 0 : (shape.terms - 1) % modulus + 1;
  const std::int64_t edge_leading = std::min(modulus, shape.terms);
  const bool splits_edge = edge > 1 && !rule.second_edge_order.empty();
  const std::int64_t edge_first = outputs - edge;
  Result<bool> done = add(rule.order, 0, edge_first, leading);
  if (done) done = add(rule.edge_order, edge_first, splits_edge ? 1 : edge, edge_leading);
  if (done && splits_edge) {
    done = add(rule.second_edge_order, edge_first + 1, 1, edge_leading);
    if (done) done = add(rule.edge_order, edge_first + 2, edge - 2, edge_leading);
  }
  if (!done) return done.error();
  return plan;
}

Result<Order> linear_order(const LinearKernel& kernel, const LinearShape& shape) {
  Result<LinearPlan> plan = plan_linear(kernel, shape);
  if (!plan) return plan.error();
  return std::move(plan->columns.front().order);
}

Result<bool> apply_linear(const LinearKernel& kernel, const LinearProblem& problem, float* out,
                          std::int64_t out_stride, const EngineOptions& options) {
  const auto or_else = [](std::int64_t launched, std::int64_t computed) {
    return launched == 0 ? computed : launched;
  };
  Result<LinearPlan> plan =
      plan_linear(kernel, {or_else(problem.launch_rows, problem.rows),
                           or_else(problem.launch_outputs, problem.outputs), problem.terms,
                           problem.storage, problem.multiprocessors, problem.batch});
  if (!plan) return plan.error();
  if (problem.output) plan->output = *problem.output;
  if (plan->rule->exchanged) {
    Result<bool> summed = sum_exchanged(problem, *plan, out, out_stride, options);
    if (!summed) return summed;
  } else {
    for (LinearColumns columns : plan->columns) {
      columns.count = std::min(columns.count, problem.outputs - columns.first);
      if (columns.count <= 0) continue;
      Result<bool> summed = sum_outputs(problem, *plan, columns, out, out_stride, options);
      if (!summed) return summed;
    }
  }
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const std::span<float> row(out + i * out_stride, static_cast<std::size_t>(problem.outputs));
    Result<bool> finished = finish_row(kernel, problem, *plan, i, row, options.level);
    if (!finished) return finished;
  }
  return true;
}

}  // namespace kvsim
