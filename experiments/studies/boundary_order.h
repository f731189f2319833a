// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/boundary_figures.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// Whether texts that part early have a larger KL: early against late ones (split at the median),
/// and correlations of the flip's step with KL, each for the KL of the texts as they are, of their
/// steps behind the fork alone, and after the same tokens. One text a prompt, so texts are
/// independent. result.order[SOURCE]. What too few texts cannot tell is null. Errors of the
/// statistics.
[[nodiscard]] Result<bool> add_order(const BoundaryFigures& figures, StudySummary& summary);

}  // namespace kvsim::experiments
