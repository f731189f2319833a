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

}  // namespace kvsim::experiments
