// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Hidden states behind each layer and what the operators give, with the cache against without it,
/// both fed the tokens of the greedy text with the cache: study 2 of arXiv 2604.15409, in relative
/// terms beside the paper's own.
[[nodiscard]] std::unique_ptr<Study> make_drift();

}  // namespace kvsim::experiments
