// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experiments/statistics/estimate.h"
#include "experiments/statistics/kolmogorov_smirnov.h"
#include "softfloat/result.h"

/// The chance that a token flips, as a law of its margin and the size of the error: P(flip) =
/// Φ(constant + slope · margin ÷ error), where error is the root mean square by which a source
/// moves the difference of the two largest logits. Were those moves normal around 0 and independent
/// of the margin, and no third token near, constant would be 0 and slope −1: the normal law.
namespace kvsim::experiments {

/// One step.
struct LawStep {
  std::int64_t prompt = 0;
  std::size_t source = 0;  ///< each has its own size of error
  double margin = 0;       ///< logits
  double error = 0;        ///< signed
  bool flips = false;
};

/// What the laws say of one step, made from the other half of the prompts.
struct LawPrediction {
  std::int64_t prompt = 0;
  double margin = 0;  ///< in units of the error's size, as that half has it
  double error = 0;   ///< in the same units, signed
  double base = 0;    ///< that half's share of flips
  double normal = 0;  ///< of the normal law
  std::optional<double> fitted = {};
  bool flips = false;
};

/// Mean squared distance of a prediction and what happened.
struct BrierScores {
  double base = 0;
  double normal = 0;
  std::optional<double> fitted;
};

struct FlipLaw {
  std::int64_t steps = 0;  ///< of sources that have an error
  std::int64_t flips = 0;
  std::optional<statistics::Estimate> constant;  ///< ends NaN where there is no interval
  std::optional<statistics::Estimate> slope;
  std::optional<double> pseudo_r2;
  std::vector<LawPrediction> predictions;  ///< of all steps that the other half can judge
  std::optional<BrierScores> brier;
  double expected_normal = 0;             ///< flips among `predictions`
  std::optional<double> expected_fitted;  ///< the same
  /// The errors against the normal law: d over all predictions; p from the middle one of each
  /// prompt, because steps of one prompt are not independent.
  std::optional<double> ks_distance;
  std::optional<statistics::KolmogorovSmirnov> ks_by_prompt;
};

/// Fits by statistics::probit_regression(); intervals are those of statistics::grouped_jackknife()
/// over up to ten groups of prompts. Predictions are of steps whose prompt had no part in what they
/// were made from: prompts 0, 2, … of the list from 1, 3, … and the other way round. What cannot be
/// told is empty. Errors (usage) of the statistics.
[[nodiscard]] Result<FlipLaw> flip_law(std::span<const LawStep> steps);

}  // namespace kvsim::experiments
