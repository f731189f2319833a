// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <limits>

#include "sim/order.h"
#include "softfloat/format.h"

/// Rigorous bounds on rounding errors under ties to even. Every function returns an upper bound in
/// binary64: its own roundings are covered by a factor above 1. Infinity stands for "no bound,
/// because a number overflows or could".
namespace kvsim {

/// The constants of a format that error bounds are made of.
struct RoundingUnits {
  double unit_roundoff = 0;  ///< u = 2^−p
  double half_quantum = 0;   ///< half the smallest subnormal: the error of a subnormal result
  double largest_finite = 0;
  double smallest_normal = 0;
  bool saturates = false;  ///< neither infinity nor NaN: an overflow leaves a finite number

  explicit RoundingUnits(const softfloat::Format& format);
};

inline constexpr double no_bound = std::numeric_limits<double>::infinity();

/// Covers the roundings of fewer than 2^20 binary64 operations on non-negative numbers.
[[nodiscard]] constexpr double outward(double bound) { return bound * (1.0 + 0x1p-32); }

/// e^x − 1 from above, x ≥ 0.
[[nodiscard]] double expm1_above(double x);

/// Error of one rounding to nearest whose rounded result is `rounded`; no bound where that is the
/// largest number of a format that saturates, since any larger number gives it too.
[[nodiscard]] double rounding_error(const RoundingUnits& units, double rounded);

/// Error of one rounding to nearest of a number of magnitude at most `magnitude`.
[[nodiscard]] double rounding_error_before(const RoundingUnits& units, double magnitude);

/// A-priori bound on the error of a sum of products in some order. Products are rounded (or fused:
/// the bound covers both) and may be subnormal. With the height h of the tree the relative part is
/// min(γ_h, (n−1)u), γ_h = hu ÷ (1 − hu): Higham, "Accuracy and Stability of Numerical Algorithms",
/// §3.1 and §4.2; Jeannerod and Rump, "Improved error bounds for inner products in floating-point
/// arithmetic", SIAM J. Matrix Anal. Appl. 34(2), 2013 (no restriction on n). An `exact` order
/// rounds its sum once. There is no bound where an order rounds otherwise than to the accumulator.
class SumBound {
 public:
  /// For sums of `terms` products. Requires check_length(order, terms).
  SumBound(const RoundingUnits& units, const Order& order, std::int64_t terms);

  /// The bound for products with Σ|a·b| ≤ `absolute_sum`.
  [[nodiscard]] double operator()(double absolute_sum) const;

 private:
  RoundingUnits units_;
  bool is_exact_;
  double terms_;
  double relative_;
};

}  // namespace kvsim
