// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <map>
#include <string>

#include "sim/attention/problem.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What the attributes `causal`, `scale`, `splits` and `split-size` of the operator sdpa say, set
/// in `problem`: without them no mask, 1 ÷ √head_dim, and the kernel chooses. Others are passed
/// over. Errors (usage): a value out of range.
[[nodiscard]] Result<bool> set_attention_attributes(
    const std::map<std::string, std::string>& attributes, AttentionProblem& problem);

}  // namespace kvsim::gpu
