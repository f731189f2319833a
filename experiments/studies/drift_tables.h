// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/drift_figures.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// The tables of the study drift. Errors (cannot_tell): no prompt has a second token.
[[nodiscard]] Result<StudySummary> summarize_drift(const DriftFigures& figures);

}  // namespace kvsim::experiments
