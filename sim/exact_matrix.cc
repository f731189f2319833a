// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/exact_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/engine/binary64_matrix.h"
#include "sim/parallel.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

float b_number(const MatrixProblem& problem, std::int64_t k, std::int64_t j) {
  return problem.b[problem.b_transposed ? j * problem.b_stride + k : k * problem.b_stride + j];
}

/// One element on softfloat. Operands are floats whatever their format, so their exact sum is that
/// of binary32 operands.
float reference_sum(const MatrixProblem& problem, std::int64_t i, std::int64_t j) {
  const auto terms = static_cast<std::size_t>(problem.terms);
  std::vector<softfloat::Bits> a(terms);
  std::vector<softfloat::Bits> b(terms);
  for (std::int64_t k = 0; k < problem.terms; ++k) {
    const auto at = static_cast<std::size_t>(k);
    a[at] = std::bit_cast<std::uint32_t>(problem.a[i * problem.a_stride + k]);
    b[at] = std::bit_cast<std::uint32_t>(b_number(problem, k, j));
  }
  const softfloat::Bits bits =
      sum_products(problem.order, Product::exact, softfloat::binary32, softfloat::binary32, a, b)
          .bits;
  const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::isnan(value) ? engine::canonical_nan : value;
}

Error usage(const char* message) { return Error{ErrorKind::usage, message}; }

}  // namespace

Result<bool> exact_matrix(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                          const EngineOptions& options) {
  const std::vector<OrderItem>& items = problem.order.items;
  if (items.size() != 1 || items[0].kind != OrderKind::exact || problem.c != nullptr ||
      problem.accumulator != softfloat::binary32) {
    return usage("an exact product of matrices; accepted: order exact, accumulator binary32");
  }
  if (problem.rows < 0 || problem.terms < 0 || problem.columns < 0 ||
      problem.a_stride < problem.terms ||
      problem.b_stride < (problem.b_transposed ? problem.terms : problem.columns) ||
      out_stride < problem.columns) {
    return usage("sizes and strides of a product of matrices; accepted: strides of whole rows");
  }
  const auto rows = static_cast<std::size_t>(problem.rows);
  const auto columns = static_cast<std::size_t>(problem.columns);
  std::vector<double> x(rows * static_cast<std::size_t>(problem.terms));
  std::vector<double> row_norms(rows);
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const float* row = problem.a + i * problem.a_stride;
    std::copy_n(row, problem.terms, x.data() + i * problem.terms);
    double squares = 0;
    for (std::int64_t k = 0; k < problem.terms; ++k)
      squares += static_cast<double>(row[k]) * row[k];
    row_norms[static_cast<std::size_t>(i)] = std::sqrt(squares);
  }
  std::vector<double> sums(rows * columns);
  std::vector<double> column_norms(columns);
  multiply_binary64({.rows = problem.rows,
                     .terms = problem.terms,
                     .columns = problem.columns,
                     .x = x.data(),
                     .w = problem.b,
                     .w_stride = problem.b_stride,
                     .w_transposed = problem.b_transposed,
                     .squares = column_norms.data()},
                    sums.data(), options);
  for (double& norm : column_norms) norm = std::sqrt(norm);

  // Products of floats are exact in binary64. A sum takes at most `block` additions inside a block
  // and one for each block; Σ|a b| ≤ ‖a‖ ‖b‖ (Cauchy, Schwarz). Twice the first-order bound also
  // covers the roundings of the norms and of the bound itself.
  const std::int64_t blocks = (problem.terms + binary64_block - 1) / binary64_block;
  const auto additions = static_cast<double>(binary64_block + blocks);
  const double bound = 2 * additions * 0x1p-53;
  parallel_for(problem.rows, options.threads, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < problem.columns; ++j) {
      const double sum = sums[static_cast<std::size_t>(i * problem.columns + j)];
      const double error = bound * row_norms[static_cast<std::size_t>(i)] *
                           column_norms[static_cast<std::size_t>(j)];
      const float low = static_cast<float>(sum - error);
      const float high = static_cast<float>(sum + error);
      // Zeros, infinities and NaN go the long way as well: their signs and kinds need it.
      const bool decided = low == high && low != 0 && std::isfinite(low);
      out[i * out_stride + j] = decided ? low : reference_sum(problem, i, j);
    }
  });
  return true;
}

}  // namespace kvsim
