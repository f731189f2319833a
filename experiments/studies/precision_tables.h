// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// The tables of the study precision. Throws Json::exception as Study::summarize().
[[nodiscard]] Result<StudySummary> summarize_precision(const StudyRecords& records);

}  // namespace kvsim::experiments
