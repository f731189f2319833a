// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// The straight line through points.
namespace kvsim::statistics {

/// y = intercept + slope · x.
struct LineFit {
  Estimate slope;  ///< with the interval of Student's law of n − 2 degrees of freedom
  double intercept = 0;
  double residual = 0;  ///< standard deviation of y from the line: √(squares ÷ (n − 2))
  std::int64_t points = 0;
};

/// Ordinary least squares. On logarithms the slope is an exponent. Errors (usage): lists of unequal
/// length, a number that is not finite, a confidence outside (0, 1); (cannot_tell) fewer than three
/// points, x that are all equal.
[[nodiscard]] Result<LineFit> fit_line(std::span<const double> x, std::span<const double> y,
                                       double confidence = usual_confidence);

}  // namespace kvsim::statistics
