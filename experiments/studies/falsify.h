// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// The third study of arXiv 2604.15409: its five experiments and the grid that it leaves out. How
/// errors of attention grow with the number of keys, rounding by rounding; hidden states layer by
/// layer; keys and values computed at once against token by token; flip index against KL; KL in
/// other formats with the floor of its evaluation; storage × operands × sums × output.
[[nodiscard]] std::unique_ptr<Study> make_falsify();

}  // namespace kvsim::experiments
