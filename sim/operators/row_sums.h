// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/engine/columns.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/result.h"

namespace kvsim {

/// One sum for each row of a matrix in binary32: Σ_k a[i][k] × b[i][k].
struct RowSumsProblem {
  Order order = {};
  Product product = Product::rounded;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* a = nullptr;  ///< [rows][columns], floats
  const float* b = nullptr;  ///< [rows][columns]; null: every b is 1 (a plain sum)
};

/// out[i] = the sum of row i with the bits of sum_products() on binary32, 0 ≤ i < rows; a NaN is
/// the quiet NaN 0x7fc00000. Rows of rounded products and plain sums advance together as lanes.
/// Errors as for sum_columns().
Result<bool> sum_rows(const RowSumsProblem& problem, float* out, const EngineOptions& options = {});

}  // namespace kvsim
