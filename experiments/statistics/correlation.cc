// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/correlation.h"

#include <fmt/format.h>

#include <boost/math/special_functions/expm1.hpp>
#include <boost/math/special_functions/log1p.hpp>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

constexpr double dependent_below = 1e-10;  // of a vector's length: what is left is rounding

std::optional<Error> check_pairs(std::span<const double> x, std::span<const double> y,
                                 std::size_t controls) {
  if (x.size() != y.size()) {
    return Error{ErrorKind::usage, fmt::format("a correlation of {} and {} numbers; accepted: "
                                               "lists of equal length",
                                               x.size(), y.size())};
  }
  if (auto error = check_finite("first list", x)) return error;
  if (auto error = check_finite("second list", y)) return error;
  if (x.size() >= controls + 3) return std::nullopt;
  return Error{ErrorKind::cannot_tell, fmt::format("a correlation of {} pairs; needed: {} or more",
                                                   x.size(), controls + 3)};
}

/// tanh(atanh r + shift).
double shifted(double r, double shift) {
  const double twice = boost::math::log1p(r) - boost::math::log1p(-r) + 2 * shift;
  if (twice > 600) return 1;
  const double less_one = boost::math::expm1(twice);
  return less_one / (less_one + 2);
}

/// What the sums say about n pairs; `inflation`: of the variance of atanh r over 1 ÷ (degrees − 1).
Result<Correlation> assess(const CoMoments& sums, double n, double degrees, double inflation,
                           double confidence) {
  if (!(sums.xx > 0 && sums.yy > 0)) {
    return Error{ErrorKind::cannot_tell, fmt::format("a correlation with a constant {} list",
                                                     sums.xx > 0 ? "second" : "first")};
  }
  const double r = sums.correlation;
  Correlation result;
  result.pairs = static_cast<std::int64_t>(n);
  result.degrees = degrees;
  result.p = nine_digits(incomplete_beta(degrees / 2, 0.5, sums.unexplained));
  result.r = {nine_digits(r), -1, 1};
  if (sums.unexplained == 0) {
    result.r = {r, r, r};
  } else if (degrees > 1) {
    const double half = normal_half_width(confidence) * std::sqrt(inflation / (degrees - 1));
    result.r.low = nine_digits(shifted(r, -half));
    result.r.high = nine_digits(shifted(r, half));
  }
  return result;
}

double length(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

/// Takes the part along each of the orthonormal `directions` off, twice: the second time for what
/// rounding left. False when nothing but rounding remains.
bool take_off(std::span<const std::vector<double>> directions, std::vector<double>& values) {
  const double before = length(values);
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::vector<double>& direction : directions) {
      double along = 0;
      for (std::size_t i = 0; i < values.size(); ++i) along += direction[i] * values[i];
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= along * direction[i];
    }
  }
  return length(values) > dependent_below * before;
}

std::vector<double> centred(std::span<const double> values) {
  const double mean = moments(values).mean;
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(value - mean);
  return result;
}

}  // namespace

Result<Correlation> pearson(std::span<const double> x, std::span<const double> y,
                            double confidence) {
  return partial_correlation(x, y, {}, confidence);
}

Result<Correlation> spearman(std::span<const double> x, std::span<const double> y,
                             double confidence) {
  if (auto error = check_pairs(x, y, 0)) return *error;
  if (auto error = check_confidence(confidence)) return *error;
  const auto n = static_cast<double>(x.size());
  return assess(co_moments(mid_ranks(x).ranks, mid_ranks(y).ranks), n, n - 2, 1.06, confidence);
}

Result<Correlation> partial_correlation(std::span<const double> x, std::span<const double> y,
                                        std::span<const std::span<const double>> controls,
                                        double confidence) {
  if (auto error = check_pairs(x, y, controls.size())) return *error;
  if (auto error = check_confidence(confidence)) return *error;
  const auto n = static_cast<double>(x.size());
  if (controls.empty()) return assess(co_moments(x, y), n, n - 2, 1, confidence);
  std::vector<std::vector<double>> directions;
  directions.reserve(controls.size());
  for (std::size_t i = 0; i < controls.size(); ++i) {
    if (auto error = check_finite(fmt::format("control {}", i + 1), controls[i])) return *error;
    if (controls[i].size() != x.size()) {
      return Error{ErrorKind::usage, fmt::format("control {} of {} numbers; accepted: {}, as the "
                                                 "lists",
                                                 i + 1, controls[i].size(), x.size())};
    }
    std::vector<double> direction = centred(controls[i]);
    if (!take_off(directions, direction)) {
      return Error{ErrorKind::cannot_tell, fmt::format("control {} is constant or follows from the "
                                                       "controls before it",
                                                       i + 1)};
    }
    const double scale = length(direction);
    for (double& value : direction) value /= scale;
    directions.push_back(std::move(direction));
  }
  std::vector<double> x_rest = centred(x);
  std::vector<double> y_rest = centred(y);
  if (!take_off(directions, x_rest) || !take_off(directions, y_rest)) {
    return Error{ErrorKind::cannot_tell,
                 "a partial correlation of a list that is constant or follows from the controls"};
  }
  const double degrees = n - 2 - static_cast<double>(controls.size());
  return assess(co_moments(x_rest, y_rest), n, degrees, 1, confidence);
}

}  // namespace kvsim::statistics
