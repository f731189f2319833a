// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/jackknife.h"

#include <fmt/format.h>

#include <cmath>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/double_double.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {

Result<Estimate> grouped_jackknife(double value, std::span<const double> without,
                                   double confidence) {
  if (auto error = check_confidence(confidence)) return *error;
  if (auto error = check_finite("value", {&value, 1})) return *error;
  if (auto error = check_finite("values without a group", without)) return *error;
  if (without.size() < 2) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a jackknife of {} groups; needed: 2 or more", without.size())};
  }
  DoubleDouble squares;
  for (const double each : without) {
    const double deviation = each - value;
    squares = squares + two_product(deviation, deviation);
  }
  const auto groups = static_cast<double>(without.size());
  const double error = std::sqrt((groups - 1) / groups * squares.high);
  const double half = student_half_width(confidence, groups - 1) * error;
  return Estimate{nine_digits(value), nine_digits(value - half), nine_digits(value + half)};
}

}  // namespace kvsim::statistics
