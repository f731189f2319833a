// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/row_sums.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// Rows that are turned into columns at a time: a multiple of every vector length.
constexpr std::int64_t tile = 64;

ColumnsProblem plain_problem(const RowSumsProblem& problem) {
  ColumnsProblem result;
  result.order = problem.order;
  result.product = problem.product;
  result.input = softfloat::binary32;
  result.accumulator = softfloat::binary32;
  result.terms = problem.columns;
  return result;
}

/// Terms as plain numbers, turned so that rows become columns: products are rounded to binary32
/// here, as Product::rounded asks.
Result<bool> sum_tiles(const RowSumsProblem& problem, float* out, const EngineOptions& options) {
  ColumnsProblem columns = plain_problem(problem);
  columns.product = Product::rounded;
  std::vector<float> terms(static_cast<std::size_t>(problem.columns * tile));
  for (std::int64_t first = 0; first < problem.rows; first += tile) {
    const std::int64_t count = std::min(tile, problem.rows - first);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = (first + i) * problem.columns;
      for (std::int64_t k = 0; k < problem.columns; ++k) {
        const float a = problem.a[row + k];
        terms[static_cast<std::size_t>(k * count + i)] =
            problem.b == nullptr ? a : a * problem.b[row + k];
      }
    }
    columns.columns = count;
    columns.stride = count;
    columns.b = terms.data();
    Result<bool> summed =
        sum_columns(columns, std::span(out + first, static_cast<std::size_t>(count)), {}, options);
    if (!summed) return summed;
  }
  return true;
}

}  // namespace

Result<bool> sum_rows(const RowSumsProblem& problem, float* out, const EngineOptions& options) {
  if (problem.b == nullptr || problem.product == Product::rounded)
    return sum_tiles(problem, out, options);
  ColumnsProblem columns = plain_problem(problem);
  columns.columns = 1;
  columns.stride = 1;
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    columns.a = problem.a + i * problem.columns;
    columns.b = problem.b + i * problem.columns;
    Result<bool> summed = sum_columns(columns, std::span(out + i, 1), {}, options);
    if (!summed) return summed;
  }
  return true;
}

}  // namespace kvsim
