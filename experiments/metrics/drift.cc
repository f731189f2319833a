// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "experiments/statistics/samples.h"
#include "sim/double_double.h"
#include "sim/ulp.h"

namespace kvsim::metrics {
namespace {

/// ‖x‖, scaled by a power of two so that no square leaves binary64.
double norm_of(std::span<const double> x) {
  double largest = 0;
  for (const double each : x) largest = std::max(largest, std::fabs(each));
  if (largest == 0) return 0;
  int exponent = 0;
  static_cast<void>(std::frexp(largest, &exponent));
  double sum = 0;
  for (const double each : x) {
    const double scaled = std::ldexp(each, -exponent);
    sum += scaled * scaled;
  }
  return std::ldexp(std::sqrt(sum), exponent);
}

double ulps_between(const softfloat::Format& format, double a, double b) {
  if (a == b) return 0;
  const double larger = std::max(std::fabs(a), std::fabs(b));
  return std::ldexp(std::fabs(a - b), -ulp_exponent(format, DoubleDouble(larger)));
}

double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return statistics::sorted_quantile(numbers, 0.5);
}

/// ½ ‖a ÷ ‖a‖ − b ÷ ‖b‖‖² = 1 − cos(a, b).
double cosine_distance(std::span<const double> a, double norm_a, std::span<const double> b,
                       double norm_b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = a[i] / norm_a - b[i] / norm_b;
    sum += difference * difference;
  }
  return sum / 2;
}

}  // namespace

Result<Drift> drift(const softfloat::Format& format, std::span<const double> a,
                    std::span<const double> b) {
  if (a.empty() || a.size() != b.size()) {
    return Error{ErrorKind::usage, fmt::format("vectors of {} and {} numbers; accepted: equally "
                                               "many, at least one",
                                               a.size(), b.size())};
  }
  if (const auto error = statistics::check_finite("a", a)) return *error;
  if (const auto error = statistics::check_finite("b", b)) return *error;
  Drift result;
  std::vector<double> differences;
  std::vector<double> ulps;
  differences.reserve(a.size());
  ulps.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences.push_back(a[i] - b[i]);
    ulps.push_back(ulps_between(format, a[i], b[i]));
    if (a[i] != b[i]) ++result.differing;
  }
  result.norm = norm_of(a);
  result.l2 = norm_of(differences);
  result.largest_ulps = std::ranges::max(ulps);
  result.median_ulps = median_of(std::move(ulps));
  if (result.norm == 0) return result;
  result.relative = result.l2 / result.norm;
  const double other = norm_of(b);
  if (other > 0) result.cosine_distance = cosine_distance(a, result.norm, b, other);
  return result;
}

WithoutMassive without_massive(std::span<const double> a, std::span<const double> b,
                               double factor) {
  WithoutMassive result;
  if (a.empty()) return result;
  std::vector<double> magnitudes;
  magnitudes.reserve(a.size());
  for (const double each : a) magnitudes.push_back(std::fabs(each));
  const double limit = factor * median_of(std::move(magnitudes));
  result.a.reserve(a.size());
  result.b.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::fabs(a[i]) > limit) {
      ++result.massive;
      continue;
    }
    result.a.push_back(a[i]);
    result.b.push_back(b[i]);
  }
  return result;
}

}  // namespace kvsim::metrics
