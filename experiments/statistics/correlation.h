// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// How far two quantities rise and fall together.
namespace kvsim::statistics {

/// A correlation coefficient, which is its own effect size, with the test against 0.
struct Correlation {
  Estimate r;              ///< −1 to 1
  double p = 1;            ///< two-sided; 0 at r = ±1
  double degrees = 0;      ///< of freedom: n − 2 − number of controls
  std::int64_t pairs = 0;  ///< n
};

/// Pearson's correlation r = Σ(x − x̄)(y − ȳ) ÷ √(Σ(x − x̄)² Σ(y − ȳ)²). p is of Student's law of
/// r √(degrees ÷ (1 − r²)); the interval is tanh(atanh r ± z ÷ √(n − 3)), [−1, 1] where n = 3.
/// Sources: Student, "Probable error of a correlation coefficient", Biometrika 6(2–3), 1908;
/// Fisher, "On the 'probable error' of a coefficient of correlation deduced from a small sample",
/// Metron 1, 1921. Errors (usage): lists of unequal length, a number that is not finite, a
/// confidence outside (0, 1); (cannot_tell) fewer than three pairs, a constant list.
[[nodiscard]] Result<Correlation> pearson(std::span<const double> x, std::span<const double> y,
                                          double confidence = usual_confidence);

/// Spearman's correlation: Pearson's of the ranks, ties sharing the mean of theirs; p of Student's
/// law as above, which is an approximation below some ten pairs. The interval is as above with
/// √(1.06 ÷ (n − 3)). Sources: Spearman, "The proof and measurement of association between two
/// things", American Journal of Psychology 15(1), 1904; Fieller, Hartley, Pearson, "Tests for rank
/// correlation coefficients I", Biometrika 44(3–4), 1957. Errors: those of pearson().
[[nodiscard]] Result<Correlation> spearman(std::span<const double> x, std::span<const double> y,
                                           double confidence = usual_confidence);

/// The correlation of x and y after the least-squares fit of a constant and the controls was taken
/// off each. p and interval are those of Pearson's with n less the number of controls. Source:
/// Fisher, "The distribution of the partial correlation coefficient", Metron 3, 1924. Errors: those
/// of pearson(), with n − number of controls ≥ 3; (cannot_tell) a control that is constant or
/// follows from the others, x or y that follows from the controls (to 10 digits).
[[nodiscard]] Result<Correlation> partial_correlation(
    std::span<const double> x, std::span<const double> y,
    std::span<const std::span<const double>> controls, double confidence = usual_confidence);

}  // namespace kvsim::statistics
