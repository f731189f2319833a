// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "experiments/setup.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// Whether all numbers have the same bits; NaNs count as equal, −0 and +0 do not.
[[nodiscard]] bool same_bits(std::span<const double> first, std::span<const double> second);

/// Two arms along the first one's text: {"steps", "other_logits": steps whose logits have other
/// bits, "other_caches": 1 where the caches at the end have other bits, else 0}. Errors of the
/// engine.
[[nodiscard]] Result<Json> compare_bits(const StudyArm& first, const StudyArm& second,
                                        std::span<const TokenId> prompt, std::int64_t new_tokens);

}  // namespace kvsim::experiments
