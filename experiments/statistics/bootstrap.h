// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// Intervals for any figure, by drawing the data at hand again and again.
namespace kvsim::statistics {

/// How a bootstrap is drawn. Equal settings give equal results whatever `threads`.
struct BootstrapSettings {
  std::int64_t resamples = 10000;  ///< 2 or more
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  ///< figures of one study take different streams
  double confidence = usual_confidence;
  int threads = 1;
};

/// The intervals of one figure.
struct Bootstrap {
  Estimate percentile;          ///< of the figure's value in the resamples
  std::optional<Estimate> bca;  ///< bias-corrected and accelerated; nothing where it is undefined
  double standard_error = 0;    ///< standard deviation of the value in the resamples
  double bias_correction = 0;   ///< z₀ of BCa
  double acceleration = 0;      ///< a of BCa
  std::int64_t undefined = 0;   ///< resamples in which the figure is undefined: left out
};

/// A figure of the clusters whose indices are given, each as often as it was drawn; NaN where it is
/// undefined. Called from several threads where threads > 1.
using ClusterFigure = std::function<double(std::span<const std::int64_t> clusters)>;

/// Draws `clusters` of the clusters 0 … clusters − 1 with replacement, `resamples` times, and
/// evaluates the figure of each draw. A cluster is what is independent of the rest: a prompt with
/// all its tokens, layers and seeds. For data without clusters each number is one. Draw i of
/// resample r is philox_bits(seed, stream, r · clusters + i), its high half scaled to 0 … clusters
/// − 1 (uneven by at most clusters ÷ 2^32).
///
/// Percentile: the quantiles (1 ∓ confidence) ÷ 2. BCa: those at Φ(z₀ + (z₀ + z) ÷ (1 − a(z₀ +
/// z))), z₀ = Φ⁻¹(share of resamples below the value, equal ones half), a = Σ d³ ÷ (6 (Σ d²)^1.5)
/// with the deviations d of the jackknife, which leaves one cluster out. BCa is undefined where
/// every resample lies on one side of the value or a jackknife value is undefined. Sources: Efron,
/// Tibshirani, "An introduction to the bootstrap", 1993, chapters 13 and 14; clusters: Davison,
/// Hinkley, "Bootstrap methods and their application", 1997, section 3.8.
///
/// Errors (usage): fewer than 2 resamples, 2^31 clusters or more, a confidence outside (0, 1);
/// (cannot_tell) fewer than 2 clusters, a figure that is undefined for the data themselves or for
/// more than half of the resamples.
[[nodiscard]] Result<Bootstrap> cluster_bootstrap(std::int64_t clusters,
                                                  const ClusterFigure& figure,
                                                  const BootstrapSettings& settings);

/// The mean of all numbers of all clusters; a cluster may be empty. Errors: those above; (usage) a
/// number that is not finite.
[[nodiscard]] Result<Bootstrap> bootstrap_mean(std::span<const std::vector<double>> clusters,
                                               const BootstrapSettings& settings);

}  // namespace kvsim::statistics
