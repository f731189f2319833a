// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/boundary_figures.h"
#include "experiments/study.h"

namespace kvsim::experiments {

/// The headline; the sources with their errors and flips; that no token flips whose margin is above
/// twice the largest difference of a logit, which is a theorem: if one does, records or program are
/// wrong, and the headline says so; flips by margin in units in the last place.
/// result.sources[NAME], result.reach and result.ulps.
void add_margins(const BoundaryFigures& figures, StudySummary& summary);

}  // namespace kvsim::experiments
