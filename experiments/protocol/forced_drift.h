// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/metrics/drift.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/setup.h"
#include "softfloat/result.h"

/// How far the inner states of two arms drift apart while both are fed the same tokens.
namespace kvsim::experiments {

/// The hidden state behind one layer, the first arm's against the second's.
struct LayerDrift {
  metrics::Drift all;
  metrics::Drift rest;  ///< without the elements that are massive in the first arm
  std::int64_t massive = 0;
};

/// Operators whose outputs are compared, in the order of a layer.
struct DriftOperator {
  std::string_view name;       ///< "query"
  std::string_view operation;  ///< of OperatorOutput; empty: computed from others, in binary64
};
[[nodiscard]] std::span<const DriftOperator> drift_operators();

/// What the operators of a layer gave.
struct OperatorDrifts {
  std::map<std::string, metrics::Drift, std::less<>> operators;  ///< by DriftOperator::name
  /// KL of a query head's attention weights, the first arm's from the second's, in nats; empty
  /// where the engine does not say how scores are made.
  std::vector<double> weights_kl;
};

/// One step: 0 is the pass over the prompt, 1 the first generated token.
struct DriftStep {
  std::int64_t step = 0;
  std::vector<LayerDrift> layers;
  std::vector<OperatorDrifts> operators;  ///< of each layer, where they were asked for
  ForcedStep logits;
};

/// Two arms along the first one's greedy text.
struct ForcedDrift {
  std::vector<DriftStep> steps;         ///< the checkpoints that the text reached
  std::optional<std::string> left_out;  ///< why scores and weights are missing
  std::int64_t tokens = 0;              ///< of the text
  std::int64_t head_dim = 0;
};

struct ForcedDriftOptions {
  std::int64_t new_tokens = 64;
  std::span<const std::int64_t> stop_tokens = {};
  std::vector<std::int64_t> checkpoints = {};  ///< ascending steps
  bool operators = false;                      ///< compares what operators give, too
};

/// 0, 1, 2, 4, 8, … below `new_tokens`, and new_tokens − 1.
[[nodiscard]] std::vector<std::int64_t> usual_checkpoints(std::int64_t new_tokens);

/// Both arms have as many layers and elements. Errors of the engines; (usage) states that do not
/// fit each other.
[[nodiscard]] Result<ForcedDrift> forced_drift(const Engine& engine, const StudyArm& first,
                                               const StudyArm& second,
                                               std::span<const TokenId> prompt,
                                               const ForcedDriftOptions& options);

}  // namespace kvsim::experiments
