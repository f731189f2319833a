// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

/// Probabilities and their bands. Figures come from Boost.Math and are rounded to 9 significant
/// digits, so that the last bits of the host's exp and log do not show.
namespace kvsim {

/// A probability with its 95 % band.
struct Proportion {
  double value = 0;
  double low = 0;
  double high = 1;
};

/// Probability that a standard normal number is below x.
[[nodiscard]] double normal_probability_below(double x);

/// successes ÷ trials with the exact band of Clopper and Pearson ("The use of confidence or
/// fiducial limits illustrated in the case of the binomial", Biometrika 26(4), 1934) at 95 %. A
/// number of successes that is no integer takes the band's formula as it stands. trials ≥ 1.
[[nodiscard]] Proportion clopper_pearson(double successes, std::int64_t trials);

/// The value that the largest of `trials` independent |N(0, deviation²)| stays below with
/// probability `confidence`.
[[nodiscard]] double largest_normal_quantile(double deviation, std::int64_t trials,
                                             double confidence);

/// The largest share of a population that may lie beyond the largest of `trials` independent
/// observations, at 95 % confidence: 1 − 0.05^(1 ÷ trials), whatever the distribution.
[[nodiscard]] double share_beyond_largest(std::int64_t trials);

/// The nearest number of 9 significant decimal digits.
[[nodiscard]] double nine_digits(double value);

}  // namespace kvsim
