// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "gpu/crosscheck/check.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What the numbers of a check look like.
enum class CheckData : std::uint8_t {
  gaussian,  ///< standard normal; four times that for softmax and the functions
  /// Half of the terms of each sum are the negated other half, at random places: what comes out is
  /// rounding. Of attention, in every other K/V head the scores, scaled so that their rounding is
  /// of the order of 1, and in the others the values, whose keys are equal.
  cancel,
};

/// "gaussian" or "cancel".
[[nodiscard]] std::string_view to_string(CheckData data);

/// Whether the operator has data of the kind: cancel is for linear, sum, mean and attention.
[[nodiscard]] bool has_data(const Check& check, CheckData data);

/// The inputs of a check, a function of the arguments alone: numbers of its format. Errors of
/// round_values().
[[nodiscard]] Result<std::vector<Tensor>> check_data(const Check& check, CheckData data,
                                                     std::uint64_t seed);

}  // namespace kvsim::gpu
