// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Does a cache of float32 numbers bring decoding with and without it together, while everything
/// else stays in its format? Texts of both arms with keys and values in float32, beside those with
/// them in the model's format, all by one attention kernel that takes either.
[[nodiscard]] std::unique_ptr<Study> make_high_precision_cache();

}  // namespace kvsim::experiments
