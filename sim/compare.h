// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/double_double.h"
#include "softfloat/format.h"

namespace kvsim {

/// How far computed numbers lie from exact ones. Every figure leaves out the elements counted in
/// `not_finite`. Sums run over the elements in order, in double-double, so that a figure is a
/// function of the numbers alone; it is rounded to double at the end.
struct ErrorStatistics {
  std::int64_t count = 0;       ///< all elements
  std::int64_t not_finite = 0;  ///< computed or exact value is infinite or NaN
  std::int64_t exact_zero = 0;  ///< exact value 0: no relative error, left out of the mean
  /// Mean of |computed − exact| / |exact|; 0 where no element has one.
  double mean_relative_error = 0;
  /// √(Σ(computed − exact)² / Σ exact²); 0 where both sums are 0, infinity where only the second
  /// is.
  double relative_l2 = 0;
  /// Largest |computed − exact| in units of the last place of the exact value, see ulp_exponent.
  double maximum_ulp = 0;
  /// The first element where the maximum is reached; −1 where there is none.
  std::int64_t maximum_ulp_index = -1;

  friend bool operator==(const ErrorStatistics&, const ErrorStatistics&) = default;
};

/// The exponent of the unit in the last place of a finite value in `format`: the distance of the
/// format's numbers around it is 2^result. With e = ⌊log2 |value|⌋ (of the whole double-double),
/// cut to the format's exponents, it is e − precision + 1. Zero has the unit of the smallest
/// number.
[[nodiscard]] int ulp_exponent(const softfloat::Format& format, DoubleDouble value);

/// Statistics of `computed`, encodings of `format`, against `exact`, of the same length.
[[nodiscard]] ErrorStatistics compare_with_exact(const softfloat::Format& format,
                                                 std::span<const softfloat::Bits> computed,
                                                 std::span<const DoubleDouble> exact);

/// The number of elements whose encodings differ, in spans of the same length. +0 and −0 differ;
/// two NaNs differ when their codes do.
[[nodiscard]] std::int64_t count_different(std::span<const softfloat::Bits> a,
                                           std::span<const softfloat::Bits> b);

}  // namespace kvsim
