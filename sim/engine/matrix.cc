// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "sim/engine/column_kernel.h"
#include "sim/engine/program.h"
#include "sim/engine/unit_program.h"
#include "sim/parallel.h"

namespace kvsim {
namespace {

constexpr std::int64_t most_threads = 1024;
constexpr float canonical_nan = std::bit_cast<float>(0x7fc00000U);

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> check(const MatrixProblem& problem, std::int64_t out_stride, bool on_unit_alone) {
  if (problem.rows < 0 || problem.terms < 0 || problem.columns < 0) {
    return usage(fmt::format("{} rows × {} terms × {} columns: all must be 0 or more", problem.rows,
                             problem.terms, problem.columns));
  }
  if (problem.rows > 1 && (problem.a_stride < problem.terms || out_stride < problem.columns)) {
    return usage(fmt::format("strides {} of a and {} of the result: must be at least {} and {}",
                             problem.a_stride, out_stride, problem.terms, problem.columns));
  }
  if (problem.c != nullptr && !on_unit_alone) {
    return usage("an addend: accepted only where the order is one matrix unit");
  }
  return true;
}

/// An order that ends in a matrix unit.
Result<bool> sum_on_unit(const MatrixProblem& problem, const MatrixUnit& unit, float* out,
                         std::int64_t out_stride, const EngineOptions& options) {
  Result<bool> fits = check_formats(problem.order, problem.input, problem.accumulator);
  if (fits) fits = check_length(problem.order, problem.terms);
  if (!fits) return fits.error();
  if (problem.order.items.size() == 1 || problem.terms == 0) {
    return multiply_on_unit({.unit = &unit,
                             .rows = problem.rows,
                             .terms = problem.terms,
                             .columns = problem.columns,
                             .a = problem.a,
                             .a_stride = problem.a_stride,
                             .b = problem.b,
                             .b_stride = problem.b_stride,
                             .c = problem.c,
                             .c_stride = problem.c_stride},
                            out, out_stride, options);
  }
  const engine::Program program = engine::compile_order(problem.order, problem.terms);
  const Result<bool> done =
      engine::run_unit_program(problem, program, unit, out, out_stride, options);
  if (!done) return done.error();
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    for (float& x : std::span(out + i * out_stride, static_cast<std::size_t>(problem.columns))) {
      if (std::isnan(x)) x = canonical_nan;
    }
  }
  return true;
}

}  // namespace

Result<bool> sum_matrix(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                        const EngineOptions& options) {
  const std::optional<MatrixUnit> unit = unit_of(problem.order);
  const Result<bool> checked =
      check(problem, out_stride, unit.has_value() && problem.order.items.size() == 1);
  if (!checked) return checked.error();
  if (unit) return sum_on_unit(problem, *unit, out, out_stride, options);
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
