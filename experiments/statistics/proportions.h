// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// Counts and shares: how often something happened, and whether it happened more often there.
/// (The exact band of Clopper and Pearson is in sim/predict/confidence.h.)
namespace kvsim::statistics {

/// How often something happened.
struct Count {
  std::int64_t successes = 0;
  std::int64_t trials = 0;
};

/// successes ÷ trials with Wilson's interval: all π with |p − π| ≤ z √(π(1 − π) ÷ n).
/// Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA
/// 22(158), 1927. Errors (usage): counts that are none, a confidence outside (0, 1); (cannot_tell)
/// no trials.
[[nodiscard]] Result<Estimate> wilson_interval(const Count& count,
                                               double confidence = usual_confidence);

/// The share of all trials of several clusters (prompts with their steps), whose trials are not
/// independent: Wilson's interval for x · n ÷ N successes of n trials, where N are all trials, x
/// all successes and n the trials that would say as much if they were independent: n = N · (p(1 −
/// p) ÷ (N − 1)) ÷ (C ÷ (C − 1) · Σ(xᵢ − p nᵢ)² ÷ N²) · (t(N − 1) ÷ t(C − 1))², at most N, with
/// Student's t of that many degrees of freedom. Where p is 0 or 1 or there is one cluster, n is the
/// number C of clusters that have trials. Clusters of one trial each give wilson_interval().
/// Sources: Kish, "Survey sampling", 1965, section 8.2; the factor with t: Korn, Graubard,
/// "Confidence intervals for proportions with small expected number of positive counts estimated
/// from survey data", Survey Methodology 24(2), 1998. Errors: those of wilson_interval().
[[nodiscard]] Result<Estimate> clustered_share(std::span<const Count> clusters,
                                               double confidence = usual_confidence);

/// Pairs in which exactly one side succeeded.
struct DiscordantPairs {
  std::int64_t only_first = 0;
  std::int64_t only_second = 0;
};

/// McNemar's test, exact.
struct McNemar {
  double p = 1;  ///< two-sided: twice the smaller tail of a fair coin, at most 1
  /// only_first ÷ only_second with the exact 95 % interval of Clopper and Pearson, as odds; the
  /// high end or all of it is +infinity where only_second is 0. Nothing without discordant pairs.
  std::optional<Estimate> odds_ratio;
};

/// Whether one side succeeds more often, from pairs. Pairs that agree say nothing about it.
/// Source: McNemar, "Note on the sampling error of the difference between correlated proportions or
/// percentages", Psychometrika 12(2), 1947; exact form: Agresti, "Categorical data analysis", 3rd
/// edition, 2013, section 11.1.2. No discordant pair gives p = 1. Errors (usage): a negative count.
[[nodiscard]] Result<McNemar> mcnemar(const DiscordantPairs& pairs);

/// One group of a trend: what was set, and how often it happened there.
struct TrendGroup {
  double score = 0;
  Count count;
};

/// The Cochran–Armitage test.
struct Trend {
  double z = 0;
  double p = 1;      ///< two-sided, normal
  double slope = 0;  ///< the share's change per unit of the score, by weighted least squares
};

/// Whether shares p of n trials rise or fall with a score t, of means p̄ and t̄ over all trials:
/// z = Σ n(t − t̄)p ÷ √(p̄(1 − p̄) Σ n(t − t̄)²), without a correction for continuity. Source:
/// Armitage, "Tests for linear trends in proportions and frequencies", Biometrics 11(3), 1955,
/// after Cochran, Biometrics 10(4), 1954. Errors (usage): counts that are none, a score that is not
/// finite; (cannot_tell) fewer than two scores with trials, only successes or only failures.
[[nodiscard]] Result<Trend> cochran_armitage(std::span<const TrendGroup> groups);

/// The odds ratio of two groups.
struct OddsRatio {
  Estimate ratio;
  bool corrected = false;  ///< ½ was added to every cell, because one of them is 0
};

/// (a ÷ b) ÷ (c ÷ d) for a of a + b successes in the first and c of c + d in the second group, with
/// Woolf's interval: log ratio ± z √(1/a + 1/b + 1/c + 1/d). Where a cell is 0, ½ is added to every
/// cell first. Sources: Woolf, "On estimating the relation between blood group and disease", Annals
/// of Human Genetics 19(4), 1955; Haldane, "The estimation and significance of the logarithm of a
/// ratio of frequencies", the same 20(4), 1956; Anscombe, "On estimating binomial response
/// relations", Biometrika 43, 1956. Errors (usage): counts that are none, a confidence outside (0,
/// 1); (cannot_tell) a group without trials.
[[nodiscard]] Result<OddsRatio> odds_ratio(const Count& first, const Count& second,
                                           double confidence = usual_confidence);

/// Cohen's h = 2 asin √p₁ − 2 asin √p₂, from −π to π: the distance of two shares on a scale where
/// equal distances are equally hard to see. 0.2 is called small, 0.5 medium, 0.8 large. Source:
/// Cohen, "Statistical power analysis for the behavioral sciences", 2nd edition, 1988, chapter 6.
/// Errors (usage): a share outside [0, 1].
[[nodiscard]] Result<double> cohens_h(double first_share, double second_share);

}  // namespace kvsim::statistics
