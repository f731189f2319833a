// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "experiments/protocol/pair_text.h"
#include "experiments/setup.h"
#include "softfloat/result.h"

/// Two texts that have nothing to do with each other.
namespace kvsim::experiments {

/// The texts of two prompts by one arm, each after its own tokens: of every step that both have,
/// KL of the first from the second, nats, computed as that of two texts that have parted. Each
/// draws the random numbers of its own prompt. Errors of the engine and of sample_token().
[[nodiscard]] Result<std::vector<double>> unrelated_divergence(const StudyArm& arm,
                                                               const RunPrompt& first,
                                                               const RunPrompt& second,
                                                               const PairTextOptions& options);

}  // namespace kvsim::experiments
