// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// The fifth study of arXiv 2604.15409, with what its authors left out: where does the difference
/// of two decodings sit? Keys and values of one cache are put into another over the same tokens, in
/// both directions, all of them and parts; hidden states, too; and, beside it, the paper's own
/// measure: hidden states replaced at the first decode step and KL averaged over the steps behind.
/// Texts are greedy.
[[nodiscard]] std::unique_ptr<Study> make_localise();

}  // namespace kvsim::experiments
