// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/line.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {

Result<LineFit> fit_line(std::span<const double> x, std::span<const double> y, double confidence) {
  if (x.size() != y.size()) {
    return Error{ErrorKind::usage,
                 fmt::format("a line through {} and {} numbers; accepted: lists of equal length",
                             x.size(), y.size())};
  }
  if (auto error = check_finite("first list", x)) return *error;
  if (auto error = check_finite("second list", y)) return *error;
  if (auto error = check_confidence(confidence)) return *error;
  if (x.size() < 3) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a line through {} points; needed: 3 or more", x.size())};
  }
  const CoMoments sums = co_moments(x, y);
  if (!(sums.xx > 0)) return Error{ErrorKind::cannot_tell, "a line through points of one x"};
  const double slope = sums.xy / sums.xx;
  const double degrees = static_cast<double>(x.size()) - 2;
  const double squares = sums.yy * sums.unexplained;
  LineFit fit;
  fit.points = static_cast<std::int64_t>(x.size());
  fit.residual = nine_digits(std::sqrt(squares / degrees));
  const double half =
      student_half_width(confidence, degrees) * std::sqrt(squares / degrees / sums.xx);
  fit.slope = {nine_digits(slope), nine_digits(slope - half), nine_digits(slope + half)};
  fit.intercept = nine_digits(moments(y).mean - slope * moments(x).mean);
  return fit;
}

}  // namespace kvsim::statistics
