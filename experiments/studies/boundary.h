// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Flips against margins: the text with the cache, greedy, against the arm without it and against
/// other sources of error (boundary_sources.h). Whether the distance of the two largest logits and
/// the size of the error say which tokens flip, and with which probability; whether early flips go
/// with a larger KL. A source that the engine does not have is left out.
[[nodiscard]] std::unique_ptr<Study> make_boundary();

}  // namespace kvsim::experiments
