// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "run/arm.h"
#include "softfloat/result.h"

/// Which pass of an arm made each row that a step reads.
namespace kvsim::experiments {

/// The passes that computed rows 0 … prompt + generated − 1 as they stand when the arm gives the
/// logits behind them: rows of each, in order. Errors: of cache_plan(); (usage) a constructor that
/// takes a part of a longer pass's rows, as prefix-hit does.
[[nodiscard]] Result<std::vector<std::int64_t>> passes_behind(const Arm& arm,
                                                              std::int64_t prompt_tokens,
                                                              std::int64_t generated_tokens);

}  // namespace kvsim::experiments
