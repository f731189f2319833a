// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/predicted_figures.h"
#include "experiments/study.h"

namespace kvsim::experiments {

/// Headline; layers and flips, predicted beside measured; result.layers, result.within and
/// result.flips.
[[nodiscard]] StudySummary summarize_predicted(const PredictedFigures& figures);

}  // namespace kvsim::experiments
