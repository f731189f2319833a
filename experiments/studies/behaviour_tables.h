// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/behaviour_figures.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// The tables of `behaviour`, and every number by name: result[STRATEGY] has texts, same_tokens,
/// own_tokens, plateau, answers and consistency; the last three are null where the records have no
/// such thing. Errors of the statistics.
[[nodiscard]] Result<StudySummary> behaviour_summary(const BehaviourFigures& figures);

}  // namespace kvsim::experiments
