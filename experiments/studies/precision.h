// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Formats and their remedies: how often tokens are those of the widest arithmetic that the engine
/// has, and how often texts with and without the cache are one; with the four metrics of arXiv
/// 2506.09501.
[[nodiscard]] std::unique_ptr<Study> make_precision();

}  // namespace kvsim::experiments
