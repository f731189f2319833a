// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>

#include "softfloat/result.h"

/// Tails and quantiles of the laws that tests refer to. Values are of Boost.Math and not rounded:
/// what is handed out goes through nine_digits() of sim/predict/confidence.h.
namespace kvsim::statistics {

/// e^x and the natural logarithm of x > 0 without the host's library (sim/exp.h,
/// sim/normal_quantile.h); e^x is 0 below −746.
[[nodiscard]] double exponential(double x);
[[nodiscard]] double logarithm(double x);
/// The logarithm of n choose k for 0 ≤ k ≤ n.
[[nodiscard]] double log_binomial(double n, double k);

/// The density and the distribution function of the standard normal law.
[[nodiscard]] double normal_density(double x);
[[nodiscard]] double normal_below(double x);
/// P(|Z| ≥ |z|) of a standard normal Z.
[[nodiscard]] double normal_two_sided(double z);
/// z with P(|Z| ≤ z) = confidence.
[[nodiscard]] double normal_half_width(double confidence);

/// P(|T| ≥ |t|) of Student's law with `degrees` > 0 degrees of freedom.
[[nodiscard]] double student_two_sided(double t, double degrees);
/// t with P(|T| ≤ t) = confidence.
[[nodiscard]] double student_half_width(double confidence, double degrees);

/// P(X ≤ k) of a number X of heads in n throws of a fair coin; 0 ≤ k ≤ n.
[[nodiscard]] double fair_coin_at_most(double k, double n);

/// The regularised incomplete beta function I_x(a, b).
[[nodiscard]] double incomplete_beta(double a, double b, double x);

/// An Error (usage) unless 0 < confidence < 1.
[[nodiscard]] std::optional<Error> check_confidence(double confidence);

}  // namespace kvsim::statistics
