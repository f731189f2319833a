// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/linear_on_unit.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// Rounds a whole matrix to a format, where one is given.
Result<bool> round_matrix(const std::optional<softfloat::Format>& format, std::span<float> values,
                          SimdLevel level) {
  if (!format) return true;
  return round_values(*format, values, values, level);
}

Result<bool> multiply_part(const MatrixProblem& problem, const MatrixUnit& unit, std::int64_t begin,
                           std::int64_t end, float* out, std::int64_t out_stride,
                           const EngineOptions& options) {
  return multiply_on_unit({.unit = &unit,
                           .rows = problem.rows,
                           .terms = end - begin,
                           .columns = problem.columns,
                           .a = problem.a + begin,
                           .a_stride = problem.a_stride,
                           .b = problem.b + begin * problem.b_stride,
                           .b_stride = problem.b_stride},
                          out, out_stride, options);
}

}  // namespace

bool is_linear_on_unit(const Order& order) {
  const std::size_t items = order.items.size();
  if (items == 0 || items > 2 || order.items.back().kind != OrderKind::matrix_unit) return false;
  if (items == 1) return true;
  const OrderItem& outer = order.items.front();
  return (outer.kind == OrderKind::blocks || outer.kind == OrderKind::split) &&
         outer.merge == MergeOrder::sequential && !outer.init_zero;
}

Result<bool> linear_on_unit(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                            const EngineOptions& options) {
  const Result<MatrixUnit> unit = parse_matrix_unit(problem.order.items.back().unit);
  if (!unit) return unit.error();
  if (unit->operand != problem.input || problem.accumulator != softfloat::binary32) {
    return Error{
        ErrorKind::usage,
        "a linear layer on a matrix unit; accepted: operands in the unit's format, sums in "
        "binary32"};
  }
  const OrderItem* outer = problem.order.items.size() == 2 ? problem.order.items.data() : nullptr;
  if (outer == nullptr) {
    return multiply_part(problem, *unit, 0, problem.terms, out, out_stride, options);
  }
  const std::int64_t length = part_length(*outer, problem.terms);
  const std::int64_t count = problem.rows * problem.columns;
  std::vector<float> total(static_cast<std::size_t>(count));
  std::vector<float> part(static_cast<std::size_t>(problem.terms > length ? count : 0));
  for (std::int64_t begin = 0; begin < problem.terms; begin += length) {
    std::vector<float>& sum = begin == 0 ? total : part;
    Result<bool> done =
        multiply_part(problem, *unit, begin, std::min(problem.terms, begin + length), sum.data(),
                      problem.columns, options);
    if (done) done = round_matrix(outer->partials, sum, options.level);
    if (!done) return done;
    if (begin > 0) {
      for (std::size_t i = 0; i < total.size(); ++i) total[i] = total[i] + part[i];
    }
    done = round_matrix(outer->running, total, options.level);
    if (!done) return done;
  }
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    std::copy_n(total.data() + i * problem.columns, problem.columns, out + i * out_stride);
  }
  return true;
}

}  // namespace kvsim
