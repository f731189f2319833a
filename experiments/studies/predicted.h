// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// What predict says of the drift of hidden states and of flips, beside what the two arms do on the
/// prompts: a seeded decoder of the model's shape, kernels, passes and activation sizes against
/// the model.
[[nodiscard]] std::unique_ptr<Study> make_predicted();

}  // namespace kvsim::experiments
