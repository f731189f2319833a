// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/distributions.h"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "sim/exp.h"
#include "sim/normal_quantile.h"

namespace kvsim::statistics {
namespace {

// double throughout, and a value instead of an exception where an argument has no answer.
using Policy = boost::math::policies::policy<
    boost::math::policies::promote_double<false>,
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;
using Student = boost::math::students_t_distribution<double, Policy>;

constexpr double root_half = boost::math::constants::one_div_root_two<double>();

}  // namespace

double exponential(double x) { return exp_reference(x).high; }

double logarithm(double x) { return log_positive(x); }

double log_binomial(double n, double k) {
  const auto log_factorial = [](double m) { return boost::math::lgamma(m + 1, Policy()); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

double normal_density(double x) {
  return boost::math::constants::one_div_root_two_pi<double>() * exponential(-x * x / 2);
}

double normal_below(double x) { return boost::math::erfc(-x * root_half, Policy()) / 2; }

double normal_two_sided(double z) { return boost::math::erfc(std::fabs(z) * root_half, Policy()); }

double normal_half_width(double confidence) { return -normal_quantile((1 - confidence) / 2); }

double student_two_sided(double t, double degrees) {
  if (std::isinf(t)) return 0;
  return 2 * boost::math::cdf(boost::math::complement(Student(degrees), std::fabs(t)));
}

double student_half_width(double confidence, double degrees) {
  return boost::math::quantile(boost::math::complement(Student(degrees), (1 - confidence) / 2));
}

double fair_coin_at_most(double k, double n) {
  if (k >= n) return 1;
  return incomplete_beta(n - k, k + 1, 0.5);
}

double incomplete_beta(double a, double b, double x) {
  return boost::math::ibeta(a, b, x, Policy());
}

std::optional<Error> check_confidence(double confidence) {
  if (confidence > 0 && confidence < 1) return std::nullopt;
  return Error{ErrorKind::usage,
               fmt::format("confidence {}; accepted: a number between 0 and 1", confidence)};
}

}  // namespace kvsim::statistics
