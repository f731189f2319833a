// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

#include "experiments/study.h"
#include "softfloat/result.h"

/// What the numbers of the study `replay` say.
namespace kvsim::experiments {

/// Names of the parts.
inline constexpr std::string_view replay_usual = "usual";
inline constexpr std::string_view replay_invariant = "batch-invariant";
/// The way whose share is the floor of all others: the same passes again.
inline constexpr std::string_view replay_replica = "replica";

/// Throws Json::exception, as Study::summarize() does.
[[nodiscard]] Result<StudySummary> summarize_replay(const StudyRecords& records);

}  // namespace kvsim::experiments
