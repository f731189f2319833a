// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/confidence.h"

#include <fmt/format.h>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/expm1.hpp>
#include <charconv>
#include <cmath>
#include <string>

#include "sim/normal_quantile.h"

namespace kvsim {
namespace {

// double throughout, and a value instead of an exception where an argument has no answer.
using Policy = boost::math::policies::policy<
    boost::math::policies::promote_double<false>,
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

constexpr double tail = 0.025;  // each side of a 95 % band

}  // namespace

double nine_digits(double value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.8e}", value);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

double normal_probability_below(double x) {
  return nine_digits(boost::math::cdf(boost::math::normal_distribution<double, Policy>(), x));
}

Proportion clopper_pearson(double successes, std::int64_t trials) {
  const auto n = static_cast<double>(trials);
  Proportion result{successes / n, 0, 1};
  if (successes > 0) {
    result.low = boost::math::ibeta_inv(successes, n - successes + 1, tail, Policy());
  }
  if (successes < n) {
    result.high = boost::math::ibeta_inv(successes + 1, n - successes, 1 - tail, Policy());
  }
  result.low = nine_digits(result.low);
  result.high = nine_digits(result.high);
  return result;
}

double largest_normal_quantile(double deviation, std::int64_t trials, double confidence) {
  // (2Φ(q) − 1)^n = confidence, so 1 − Φ(q) = (1 − confidence^(1 ÷ n)) ÷ 2.
  const double each =
      -boost::math::expm1(log_positive(confidence) / static_cast<double>(trials), Policy());
  return nine_digits(deviation * -normal_quantile(each / 2));
}

double share_beyond_largest(std::int64_t trials) {
  return nine_digits(
      -boost::math::expm1(log_positive(0.05) / static_cast<double>(trials), Policy()));
}

}  // namespace kvsim
