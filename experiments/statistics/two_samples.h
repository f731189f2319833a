// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// Whether the numbers of one sample are larger than those of another.
namespace kvsim::statistics {

/// How the p-value of a Mann–Whitney test is computed.
enum class MannWhitneyMethod : std::uint8_t {
  automatic,  ///< exact while both samples hold fewer than 50 numbers, else normal
  exact,      ///< all ways to divide the ranks at hand, which may be tied, are equally likely
  normal,     ///< the normal law, with corrections for ties and for continuity
};

/// The Mann–Whitney (Wilcoxon rank-sum) test.
struct MannWhitney {
  double u = 0;  ///< pairs in which the first sample's number is larger; an equal pair counts ½
  double z = 0;  ///< (u − n₁n₂/2) ÷ deviation with ties, without a correction for continuity
  double p = 1;  ///< two-sided: P(|U − n₁n₂/2| ≥ |u − n₁n₂/2|)
  bool exact = false;
  double rank_biserial = 0;  ///< effect size 2u ÷ (n₁n₂) − 1: share of pairs larger less smaller
};

/// Whether numbers of the first sample tend to be larger. The deviation of U with ties of sizes t
/// is √(n₁n₂/12 · ((N + 1) − Σ(t³ − t) ÷ (N(N − 1)))). SciPy and R take the normal law as soon as
/// there is a tie; `exact` counts the divisions of the tied ranks too. Sources: Mann, Whitney, "On
/// a test of whether one of two random variables is stochastically larger than the other", Annals
/// of Mathematical Statistics 18(1), 1947; ties: Lehmann, "Nonparametrics", 1975, section 1.4;
/// rank- biserial correlation: Wendt, "Dealing with a common problem in social science", European
/// Journal of Social Psychology 2(4), 1972. Errors (usage): a number that is not finite, `exact`
/// for 200 numbers or more; (cannot_tell) an empty sample, one value throughout.
[[nodiscard]] Result<MannWhitney> mann_whitney(
    std::span<const double> first, std::span<const double> second,
    MannWhitneyMethod method = MannWhitneyMethod::automatic);

/// Welch's t test.
struct WelchT {
  Estimate difference;  ///< mean of the first less mean of the second
  double t = 0;
  double degrees = 0;   ///< of freedom, after Welch and Satterthwaite; no integer
  double p = 1;         ///< two-sided
  double cohens_d = 0;  ///< effect size, see cohens_d()
};

/// Whether two means differ, without assuming equal variances. Source: Welch, "The generalization
/// of 'Student's' problem when several different population variances are involved", Biometrika
/// 34(1–2), 1947. Errors (usage): a number that is not finite, a confidence outside (0, 1);
/// (cannot_tell) fewer than two numbers in a sample, two constant samples.
[[nodiscard]] Result<WelchT> welch_t(std::span<const double> first, std::span<const double> second,
                                     double confidence = usual_confidence);

/// Cohen's d: the difference of the means ÷ the pooled standard deviation √((Σ squared deviations
/// of both) ÷ (n₁ + n₂ − 2)). 0.2 is called small, 0.5 medium, 0.8 large. Source: Cohen,
/// "Statistical power analysis for the behavioral sciences", 2nd edition, 1988, section 2.5.
/// Errors: those of welch_t().
[[nodiscard]] Result<double> cohens_d(std::span<const double> first,
                                      std::span<const double> second);

}  // namespace kvsim::statistics
