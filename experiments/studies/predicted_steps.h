// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/protocol/pair_text.h"
#include "experiments/setup.h"
#include "run/arm_arithmetic.h"
#include "sim/predict/step_drift.h"
#include "softfloat/result.h"

/// One prompt of the study predicted: what is measured, and what is predicted without it.
namespace kvsim::experiments {

/// Both arms along the first one's greedy text.
struct MeasuredText {
  std::vector<ForcedStep> steps;
  std::vector<double> logit_gain;             ///< top_logits_gain() of the first arm, by step
  std::vector<double> logit_step;             ///< a unit in the last place of its largest logit
  std::vector<std::vector<double>> relative;  ///< by step and layer: ‖first − second‖ ÷ ‖first‖
  std::vector<double> gains;                  ///< layer_gains() of the first arm, means
  /// Of the first arm, means of the steps; of the branches, what moves with what a layer reads.
  ActivationSizes sizes;
};

/// Errors of the engines; (unavailable): an engine that does not hand out what operators give.
[[nodiscard]] Result<MeasuredText> measure_text(const StudySetup& setup, const StudyArm& first,
                                                const StudyArm& second,
                                                std::span<const TokenId> prompt);

/// The two arms of a prediction, of one shape and storage format.
struct SimulatedPair {
  ArmArithmetic first;
  ArmArithmetic second;
};
/// Errors (usage), (unavailable): arms of which nothing is predicted, and why.
[[nodiscard]] Result<SimulatedPair> simulated_pair(const StudyArm& first, const StudyArm& second);

/// Steps that are predicted: 1, 4, 16, … and the last one.
[[nodiscard]] std::vector<std::int64_t> predicted_steps(std::int64_t new_tokens);

/// What is predicted of some steps of a text.
struct PredictedText {
  std::vector<std::int64_t> steps;  ///< 1 or more each
  std::vector<StepDrift> drifts;    ///< of each of them
};
/// From lengths, kernels and sizes alone; `seed` is that of the decoder. Errors of step_drift() and
/// passes_behind().
[[nodiscard]] Result<PredictedText> predict_text(const SimulatedPair& pair, const StudySetup& setup,
                                                 std::int64_t prompt_tokens,
                                                 std::span<const std::int64_t> steps,
                                                 const ActivationSizes& sizes, std::uint64_t seed);

}  // namespace kvsim::experiments
