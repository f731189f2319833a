// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Whether query heads that share keys and values amplify rounding: the model against itself with a
/// copy of them for every query head, and decoders with seeded weights that differ in the factor R,
/// or in the head dimension, alone.
[[nodiscard]] std::unique_ptr<Study> make_gqa();

}  // namespace kvsim::experiments
