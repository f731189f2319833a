// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "gpu/backend.h"
#include "gpu/crosscheck/simulated.h"
#include "gpu/reveal/reveal.h"

namespace kvsim::gpu {

/// Orders revealed on the back end, shape by shape, when they are asked for: linear, sum and mean
/// as reveal() finds them; softmax and rms-norm, as observe() runs them, by reveal_positive(). All
/// else is unavailable. The back end must outlive it. Errors (cannot_tell): no order explains what
/// was seen.
[[nodiscard]] std::unique_ptr<Simulation> revealed_simulation(Backend& backend,
                                                              const RevealOptions& options);

}  // namespace kvsim::gpu
