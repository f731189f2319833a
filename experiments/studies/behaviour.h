// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// The first study of arXiv 2604.15409: prompts × strategies × seeds, texts with the cache against
/// texts without it. KL after the same tokens and KL between two texts that have parted stand
/// apart; a strategy without random numbers is one sample, whatever the seeds.
[[nodiscard]] std::unique_ptr<Study> make_behaviour();

}  // namespace kvsim::experiments
