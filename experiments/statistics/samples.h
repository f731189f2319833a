// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

/// What tests take from a sample: moments, ranks, quantiles.
namespace kvsim::statistics {

/// An Error (usage) that names the sample and the first number that is infinite or NaN.
[[nodiscard]] std::optional<Error> check_finite(std::string_view name,
                                                std::span<const double> values);

/// The mean and the sum of squared deviations from it. Both passes add in double-double (sim/
/// double_double.h), so a large common offset costs nothing.
struct Moments {
  double n = 0;
  double mean = 0;
  double squares = 0;

  /// squares ÷ (n − 1); n ≥ 2.
  [[nodiscard]] double variance() const { return squares / (n - 1); }
};
[[nodiscard]] Moments moments(std::span<const double> values);

/// Σ (x − mean of x)(y − mean of y), and the two sums of squares; lists of equal length.
struct CoMoments {
  double xx = 0;
  double yy = 0;
  double xy = 0;
  double correlation = 0;  ///< xy ÷ √(xx · yy); 0 where that is 0 ÷ 0
  double unexplained = 1;  ///< 1 − correlation², without cancellation; 0 below 2^−90
};
[[nodiscard]] CoMoments co_moments(std::span<const double> x, std::span<const double> y);

/// Ranks from 1; equal values share the mean of their ranks.
struct Ranks {
  std::vector<double> ranks;       ///< in the order of the sample
  std::vector<std::int64_t> ties;  ///< sizes of the groups of equal values, groups of 1 included
};
[[nodiscard]] Ranks mid_ranks(std::span<const double> values);

/// The quantile of `probability` of an ascending, not empty list, by linear interpolation: type 7
/// of Hyndman and Fan, "Sample quantiles in statistical packages", American Statistician 50(4),
/// 1996, which is also what NumPy and R do where nothing else is asked for.
[[nodiscard]] double sorted_quantile(std::span<const double> ascending, double probability);

}  // namespace kvsim::statistics
