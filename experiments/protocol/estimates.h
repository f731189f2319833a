// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <vector>

#include "experiments/study.h"
#include "softfloat/result.h"

/// Figures over prompts with their intervals, where there are prompts enough for one.
namespace kvsim::experiments {

/// The mean of all numbers of all prompts: value, and low and high of 2,000 draws of prompts, null
/// where there are fewer than two. At least one number is needed. Errors of bootstrap_mean().
[[nodiscard]] Result<Json> mean_estimate(std::span<const std::vector<double>> prompts);

/// "4.1e-06 (1.2e-06 to 9e-06)" of what mean_estimate() gives.
[[nodiscard]] SummaryCell range_cell(const Json& estimate);

}  // namespace kvsim::experiments
