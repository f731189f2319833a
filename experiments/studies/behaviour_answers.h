// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/studies/behaviour_figures.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// Adds the tables about right answers, and result[STRATEGY].answers and .consistency: accuracy of
/// both arms, the exact test of McNemar over prompts with Bonferroni's correction for the
/// strategies, the difference with an interval, and whether a prompt is answered rightly always,
/// sometimes or never over several seeds. Null where no prompt has an answer or there is one seed.
/// Errors of the statistics.
[[nodiscard]] Result<bool> add_answers(const BehaviourFigures& figures, StudySummary& summary);

}  // namespace kvsim::experiments
