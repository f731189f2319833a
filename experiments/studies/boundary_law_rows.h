// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/boundary_figures.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// The law of flips (boundary_law.h) for each source and for all together: its coefficients, how
/// well it and the normal law predict the other half of the prompts, and their calibration by
/// margin in units of the error. result.law[SOURCE or "all"] and result.calibration. Errors of the
/// statistics.
[[nodiscard]] Result<bool> add_law(const BoundaryFigures& figures, StudySummary& summary);

}  // namespace kvsim::experiments
