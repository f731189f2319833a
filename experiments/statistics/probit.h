// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// The probability of an event as a function of numbers: P(event | x) = Φ(β₀ + β₁x₁ + …).
namespace kvsim::statistics {

/// What a probit regression is fitted to: rows of predictors, and how often the event happened.
struct ProbitData {
  std::int64_t predictors = 0;     ///< numbers in a row
  std::span<const double> rows;    ///< [observations][predictors]; the constant is added
  std::span<const double> events;  ///< [observations]: 0 or 1, or a number out of `trials`
  std::span<const double> trials;  ///< [observations]; empty: 1 each
};

/// One coefficient.
struct ProbitCoefficient {
  Estimate value;  ///< with Wald's interval: value ± z · standard error
  double standard_error = 0;
  double z = 0;  ///< value ÷ standard error
  double p = 1;  ///< two-sided, normal
};

/// A fitted probit regression.
struct ProbitFit {
  std::vector<ProbitCoefficient> coefficients;  ///< the constant first
  double log_likelihood = 0;       ///< without the binomial coefficients of grouped data
  double null_log_likelihood = 0;  ///< of the constant alone
  double deviance = 0;             ///< twice the distance to a model with a share for each row
  double pseudo_r2 = 0;  ///< effect size: 1 − log_likelihood ÷ null_log_likelihood (McFadden)
  int iterations = 0;
};

/// Maximum likelihood by Fisher's scoring (iteratively reweighted least squares): each step solves
/// (Xᵀ W X) δ = Xᵀ s with W = n φ² ÷ (Φ(1 − Φ)) and s = (y − nΦ) φ ÷ (Φ(1 − Φ)), halved while the
/// likelihood falls, until no coefficient of a centred and scaled predictor moves by more than
/// 1e−10 of 1 + its size. Standard errors are the roots of the diagonal of (Xᵀ W X)⁻¹, the expected
/// information, as R's glm() gives them. Sources: Finney, "Probit analysis", 3rd edition, 1971;
/// McCullagh, Nelder, "Generalized linear models", 2nd edition, 1989, section 2.5; McFadden,
/// "Conditional logit analysis of qualitative choice behavior", 1974.
///
/// Errors (usage): lists whose lengths do not fit, a number that is not finite, events outside [0,
/// trials], a confidence outside (0, 1); (cannot_tell) events always or never, a predictor that is
/// constant or follows from the others, fewer observations than coefficients, predictors that
/// separate the events (no maximum exists).
[[nodiscard]] Result<ProbitFit> probit_regression(const ProbitData& data,
                                                  double confidence = usual_confidence);

/// Φ(β₀ + β₁x₁ + …) for one row of as many predictors as the fit has.
[[nodiscard]] double probit_probability(const ProbitFit& fit, std::span<const double> row);

}  // namespace kvsim::statistics
