// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/attention_row.h"
#include "sim/engine/simd_level.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"

/// Sums of products with bounds on their error: the one step of attention where an order matters.
namespace kvsim {

/// Σ_k factor[k] × columns[k · stride + j] for every column j < column_count, or Σ_k columns[…]
/// where `factor` is empty. All values are numbers of `input`.
struct SumProblem {
  const Order& order;
  Product product = Product::rounded;
  softfloat::Format input;
  softfloat::Format accumulator;
  std::int64_t terms = 0;
  std::span<const double> factor;   ///< [terms] or empty
  std::span<const double> columns;  ///< [terms][stride]
  std::int64_t column_count = 0;
  std::int64_t stride = 0;
  SimdLevel simd = best_simd_level();  ///< changes time, never a bit
};

/// Sums with bounds on their distance to the exact sums, and Σ|factor[k] × columns[…]| from above.
struct BoundedSums {
  BoundedValues sums;
  std::vector<double> absolute;
};

/// The sums in the problem's order. Requires check_length(order, terms).
[[nodiscard]] BoundedSums bounded_sum(const SumProblem& problem);

/// A format that holds every number of both: one of the two where possible, else binary32 or
/// binary64.
[[nodiscard]] softfloat::Format common_format(const softfloat::Format& a,
                                              const softfloat::Format& b);

}  // namespace kvsim
