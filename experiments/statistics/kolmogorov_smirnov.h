// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <span>

#include "softfloat/result.h"

/// Whether a sample follows a law, and whether two samples follow the same one.
namespace kvsim::statistics {

/// The Kolmogorov–Smirnov test.
struct KolmogorovSmirnov {
  double d = 0;  ///< the largest distance of the distribution functions, also the effect size
  double p = 1;  ///< P(D ≥ d) when the law holds
  bool exact = false;
};

/// P(D ≥ d) for n ≥ 1 independent numbers of the continuous law they are compared with.
///
/// Where n d² ≥ 4, twice the one-sided tail of Birnbaum and Tingey, d Σ C(n, j) (1 − d − j/n)^(n−j)
/// (d + j/n)^(j−1): too large by e^−24 of itself. Else, up to n = 1,000, Durbin's matrix in the
/// form of Marsaglia, Tsang and Wang, which is exact; beyond, the expansion of Pelz and Good in
/// powers of 1 ÷ √n, off by less than 1e−7. Sources: Birnbaum, Tingey, "One-sided confidence
/// contours for probability distribution functions", Annals of Mathematical Statistics 22(4), 1951;
/// Marsaglia, Tsang, Wang, "Evaluating Kolmogorov's distribution", Journal of Statistical Software
/// 8(18), 2003; Pelz, Good, "Approximating the lower tail-areas of the Kolmogorov–Smirnov
/// one-sample statistic", JRSS B 38(2), 1976; where each is good, and the expansion as it is used
/// here: Simard, L'Ecuyer, "Computing the two-sided Kolmogorov–Smirnov distribution", Journal of
/// Statistical Software 39(11), 2011.
[[nodiscard]] double kolmogorov_tail(double n, double d);

/// Kolmogorov's limit: 2 Σ (−1)^(k−1) e^(−2k²t²) for k = 1, 2, …
[[nodiscard]] double kolmogorov_limit_tail(double t);

/// Compares a sample with the law whose distribution function is `law`. The law must not have been
/// fitted to the same sample: p would be too large. Errors (usage): a number that is not finite, a
/// `law` that leaves [0, 1] or falls; (cannot_tell) an empty sample.
[[nodiscard]] Result<KolmogorovSmirnov> kolmogorov_smirnov(
    std::span<const double> sample, const std::function<double(double)>& law);

/// Compares two samples. Exact, also with ties, while the product of their sizes is at most
/// 4,000,000: of all orders of the pooled sample, the share in which the distribution functions
/// come as far apart. Beyond, Kolmogorov's limit at d √(n₁n₂ ÷ (n₁ + n₂)). Source: Hodges, "The
/// significance probability of the Smirnov two-sample test", Arkiv för Matematik 3(43), 1958; with
/// ties the distance counts only between different values. Errors: as above.
[[nodiscard]] Result<KolmogorovSmirnov> kolmogorov_smirnov(std::span<const double> first,
                                                           std::span<const double> second);

}  // namespace kvsim::statistics
