// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "run/arm_sequence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// How sensitive each layer is to a change of the hidden state that it reads.
namespace kvsim::experiments {

/// Of layer 1 and later, of the last row of a text behind its passes: the row is computed again
/// with seeded normal noise of 2 % of its size in the hidden state behind the layer before, rounded
/// to `format`; ‖change of what the layer adds‖ ÷ ‖change of what it reads‖. 0 where the noise
/// rounds away. The text stays as it is. Errors of the engine.
[[nodiscard]] Result<std::vector<double>> layer_gains(const ArmSequence& text,
                                                      const softfloat::Format& format,
                                                      std::uint64_t seed);

/// How much the two largest logits of the last row move with the hidden state behind the last
/// layer: the root mean square of their changes, ÷ the relative size of the change of the state,
/// from a few draws of noise of 10 %. What rounding to a grid of `step` adds, a sixth of step²
/// each, is taken off. 0 where a vocabulary has one token. The text stays as it is. Errors of the
/// engine.
[[nodiscard]] Result<double> top_logits_gain(const ArmSequence& text,
                                             const softfloat::Format& format, double step,
                                             std::uint64_t seed);

}  // namespace kvsim::experiments
