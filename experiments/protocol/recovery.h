// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "experiments/statistics/estimate.h"
#include "experiments/study.h"
#include "softfloat/result.h"

/// How much of a divergence a patch takes away, over many prompts.
namespace kvsim::experiments {

/// (kl_base − kl_patched) ÷ kl_base × 100; nothing where kl_base is 0 or one of them is infinite.
[[nodiscard]] std::optional<double> recovery_percent(double kl_base, double kl_patched);

/// One prompt's divergence from the donor, nats.
struct RecoveryPair {
  double kl_base = 0;
  double kl_patched = 0;
};

/// A figure and, where there are two prompts or more, its interval.
struct RecoveryFigure {
  double percent = 0;
  std::optional<statistics::Estimate> interval;  ///< percentile, of draws of prompts
};

/// The recovery of some prompts. Those without one are counted and left out of every figure.
struct Recovery {
  std::int64_t defined = 0;
  std::int64_t undefined = 0;
  /// Of the sums over prompts: (Σ base − Σ patched) ÷ Σ base. Nothing without defined ones.
  std::optional<RecoveryFigure> pooled;
  /// The mean of the prompts' recoveries, which a prompt of small base can carry anywhere.
  std::optional<RecoveryFigure> mean;
  std::optional<double> median;
};

/// One pair for each prompt. Intervals are those of statistics::cluster_bootstrap() with 2,000
/// draws. Errors of it.
[[nodiscard]] Result<Recovery> recovery_of(std::span<const RecoveryPair> prompts);

/// "98.2 (95.0 to 99.1)", "98.2" without an interval, "-" for nothing; carried as value, low, high.
[[nodiscard]] SummaryCell recovery_cell(const std::optional<RecoveryFigure>& figure);
/// The figure for JSON: value, low and high, null where there is none.
[[nodiscard]] Json json_of(const std::optional<RecoveryFigure>& figure);
/// Every figure and both counts.
[[nodiscard]] Json json_of(const Recovery& recovery);

}  // namespace kvsim::experiments
