// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>

#include "experiments/study.h"

namespace kvsim::experiments {

/// Does random noise in a cache turn texts as often as another way of making the cache does? At
/// forks spread over a greedy text the cache is replaced by that of one pass over the same tokens
/// (the real path), and by itself with noise: of the real path's size (L2, for each layer's keys
/// and values), and of k steps of its format on every number.
[[nodiscard]] std::unique_ptr<Study> make_noise();

}  // namespace kvsim::experiments
