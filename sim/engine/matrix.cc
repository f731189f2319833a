// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/matrix.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "sim/parallel.h"

namespace kvsim {

Result<bool> sum_matrix(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                        const EngineOptions& options) {
  if (problem.rows < 0) {
    return Error{ErrorKind::usage, fmt::format("{} rows: must be 0 or more", problem.rows)};
  }
  if (problem.rows > 1 && (problem.a_stride < problem.terms || out_stride < problem.columns)) {
    return Error{ErrorKind::usage,
                 fmt::format("strides {} of a and {} of the result: must be at least {} and {}",
                             problem.a_stride, out_stride, problem.terms, problem.columns)};
  }
  if (problem.c != nullptr) {
    return Error{ErrorKind::usage, "an addend: accepted only where the order is one matrix unit"};
  }
  // Row 0 alone tells whether the problem can be: the others differ in their numbers only.
  const auto sum_row = [&](std::int64_t i, int threads) {
    const ColumnsProblem row{.order = problem.order,
                             .product = problem.product,
                             .input = problem.input,
                             .accumulator = problem.accumulator,
                             .terms = problem.terms,
                             .columns = problem.columns,
                             .stride = problem.b_stride,
                             .a = problem.a + i * problem.a_stride,
                             .b = problem.b};
    const std::span<float> results(out + i * out_stride, static_cast<std::size_t>(problem.columns));
    return sum_columns(row, results, {}, {.threads = threads, .level = options.level});
  };
  if (problem.rows == 0) return true;
  const Result<bool> first = sum_row(0, options.threads);
  if (!first) return first.error();
  parallel_for(problem.rows - 1, options.threads,
               [&](std::int64_t i) { static_cast<void>(sum_row(i + 1, 1)); });
  return true;
}

}  // namespace kvsim
