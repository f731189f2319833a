// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Is a cache that is made again over the same tokens the one that was? After arXiv 2607.28495 and
/// 2606.15621: at steps of a greedy text the live cache is compared with a replica, a saved and
/// restored one, and with caches made token by token, in one pass, in chunks, and by sending all
/// tokens again: state, layer by layer, and the text behind it. A second part does the same with
/// kernels whose sums do not depend on the shape of a pass, where an engine has them.
[[nodiscard]] std::unique_ptr<Study> make_replay();

}  // namespace kvsim::experiments
