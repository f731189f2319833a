// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/grid_flips.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/exp.h"
#include "sim/predict/confidence.h"

namespace kvsim {
namespace {

/// From so many steps on the grid counts no more.
constexpr double fine_grid = 64;
/// Normal errors of more deviations than that do not happen.
constexpr double widest = 8.5;

// double throughout.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

/// E[max(0, x − deviation·Z)] − max(0, x): an even function of x, without cancellation.
double positive_part_excess(double x, double deviation) {
  constexpr double one_over_sqrt_two_pi = 0.39894228040143267794;
  const double z = std::fabs(x) / deviation;
  const double density = one_over_sqrt_two_pi * exp_reference(-z * z / 2).high;
  const double beyond = boost::math::erfc(z / std::sqrt(2.0), Policy()) / 2;
  return deviation * density - std::fabs(x) * beyond;
}

}  // namespace

double move_probability(std::int64_t moves, double deviation) {
  if (deviation <= 0) return moves == 0 ? 1 : 0;
  const auto x = static_cast<double>(moves);
  const double sum = positive_part_excess(x + 1, deviation) -
                     2 * positive_part_excess(x, deviation) +
                     positive_part_excess(x - 1, deviation);
  return std::clamp((moves == 0 ? 1 : 0) + sum, 0.0, 1.0);
}

double moved_square(double deviation) {
  if (deviation <= 0) return 0;
  if (deviation >= fine_grid) return deviation * deviation;
  const auto furthest = static_cast<std::int64_t>(std::ceil(widest * deviation)) + 1;
  double sum = 0;
  for (std::int64_t k = 1; k <= furthest; ++k) {
    sum += 2 * static_cast<double>(k * k) * move_probability(k, deviation);
  }
  return sum;
}

double flip_probability(double margin, double deviation) {
  if (deviation <= 0) return 0;
  if (deviation >= fine_grid) {
    return normal_flip_probability(margin, std::sqrt(2.0) * deviation);
  }
  const auto furthest = static_cast<std::int64_t>(std::ceil(widest * deviation)) + 1;
  if (margin > static_cast<double>(2 * furthest)) return 0;
  std::vector<double> chances;
  chances.reserve(static_cast<std::size_t>(2 * furthest + 1));
  for (std::int64_t k = -furthest; k <= furthest; ++k) {
    chances.push_back(move_probability(k, deviation));
  }
  double flips = 0;
  for (std::size_t first = 0; first < chances.size(); ++first) {
    for (std::size_t second = 0; second < chances.size(); ++second) {
      const double after = margin + static_cast<double>(first) - static_cast<double>(second);
      if (after > 0) continue;
      const double share = after < 0 ? 1 : margin > 0 ? 0.5 : 0;
      flips += share * chances[first] * chances[second];
    }
  }
  return nine_digits(flips);
}

double normal_flip_probability(double margin, double deviation) {
  return deviation > 0 ? normal_probability_below(-margin / deviation) : 0;
}

}  // namespace kvsim
