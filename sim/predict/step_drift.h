// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "sim/decoder.h"
#include "softfloat/result.h"

/// Part 5 of predict for a step of a text of a model whose activations' sizes are known: how far
/// its hidden states are apart in two ways to build the cache.
namespace kvsim {

/// How large a model's activations are, as root mean squares of a row.
struct ActivationSizes {
  double embedding = 1;               ///< the first hidden state
  std::vector<BranchSizes> branches;  ///< what attention and MLP of each layer add; not `common`
  std::vector<double> states;         ///< the hidden state behind each layer
};

/// What is predicted of one step.
struct StepDrift {
  std::vector<double> relative;  ///< ‖on − off‖ ÷ ‖off‖ of the hidden state behind each layer
  /// Root mean square of a logit's change where the logits of all tokens have deviation 1.
  double logit = 0;
};

/// Factors with which a seeded decoder's branches have those sizes, found from its branches without
/// factors: `decoder` says shape, kernels, passes and seed. Seeded branches are orthogonal to each
/// other, a model's are not: what makes its state larger than theirs goes into `common`. A branch
/// of size 0 in the model gets the factor 2^−20. Errors of run_decoder(); (usage) sizes that are
/// not one for each layer.
[[nodiscard]] Result<std::vector<BranchSizes>> branch_factors(const DecoderOptions& decoder,
                                                              const ActivationSizes& sizes);

/// Runs the seeded decoder with its passes and factors and a seeded output matrix. Errors of
/// run_decoder() and logit_changes().
[[nodiscard]] Result<StepDrift> step_drift(const DecoderOptions& decoder);

}  // namespace kvsim
