// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// What does it cost to compute the cache anew every n tokens, and how much nearer does it come to
/// a decoding without a cache? Along the greedy text of the arm without one, for n = 1, 4, 16, 64
/// and never. arXiv 2604.15409 names it as future work.
[[nodiscard]] std::unique_ptr<Study> make_refresh();

}  // namespace kvsim::experiments
