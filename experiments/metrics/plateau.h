// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/statistics/bootstrap.h"
#include "softfloat/result.h"

/// The divergence of two unrelated texts. After a flip two runs write different texts, and the
/// divergence between them says nothing about arithmetic. How large it is whatever the cause is
/// measured on pairs of runs that have nothing to do with each other: the plateau.
namespace kvsim::metrics {

/// For each of the prompts 0 … prompts − 1 another one to compare it with: a single cycle through
/// all prompts (Sattolo, "An algorithm to generate a random cyclic permutation", Information
/// Processing Letters 22(6), 1986) drawn with Philox, so each prompt is in exactly two pairs and in
/// none with itself. Errors (cannot_tell): fewer than two prompts; (usage) 2^31 or more.
[[nodiscard]] Result<std::vector<std::int64_t>> unrelated_partners(std::int64_t prompts,
                                                                   std::uint64_t seed);

/// The divergence after flips beside the plateau; prompts are the clusters of every interval.
struct PlateauComparison {
  statistics::Bootstrap after_flip;  ///< mean over the steps after a flip
  statistics::Bootstrap unrelated;   ///< mean over the steps of unrelated pairs
  /// after_flip ÷ unrelated, both drawn with the same prompts. An interval that holds 1 says that
  /// the divergence after a flip is that of any two texts.
  statistics::Bootstrap ratio;
};

/// Two lists over the same prompts: the divergences (nats) of each prompt's steps after its flip,
/// which are none where it has no flip, and those of the pair that begins with it. Errors (usage):
/// lists of unequal length, a divergence that is not finite or negative; errors of
/// statistics::cluster_bootstrap(), with the name of the list.
[[nodiscard]] Result<PlateauComparison> compare_with_plateau(
    std::span<const std::vector<double>> after_flip, std::span<const std::vector<double>> unrelated,
    const statistics::BootstrapSettings& settings);

}  // namespace kvsim::metrics
