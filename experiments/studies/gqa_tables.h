// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// The tables of the study gqa. Throws Json::exception as Study::summarize(). Errors (cannot_tell):
/// no records.
[[nodiscard]] Result<StudySummary> summarize_gqa(const StudyRecords& records);

}  // namespace kvsim::experiments
