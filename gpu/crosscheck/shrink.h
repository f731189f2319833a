// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/backend.h"
#include "gpu/crosscheck/check.h"
#include "gpu/crosscheck/crosscheck.h"
#include "gpu/crosscheck/simulated.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Replaces numbers of inputs that differ at result `index` by 0, ever smaller parts at a time, as
/// long as that result differs. First go all that the result cannot depend on: other rows of x,
/// other rows of w, other heads. Errors: of both sides.
[[nodiscard]] Result<FailingTensors> shrink(Backend& backend, Simulation& simulation,
                                            const Check& check, std::vector<Tensor> inputs,
                                            std::int64_t index, int most_runs);

/// Whether two results have the same bits; a NaN is a NaN.
[[nodiscard]] bool same_bits(float a, float b);

}  // namespace kvsim::gpu
