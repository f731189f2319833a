// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

#include "sim/dispatch.h"

namespace kvsim {

/// What is left of a difference between two ways to build a cache when linear layers and norms sum
/// exactly and only attention walks over tiles of keys: each probability is rounded against the
/// running maximum of its block, and other rows in a pass mean other blocks.
inline constexpr std::string_view rescale_rounding = "rescale rounding";

/// Whether two arms with this dispatch, and no plant, can differ in nothing else: every linear
/// kernel and the norm sum exactly, one kernel that is tiled does attention for one query and for
/// several, and no activation computes the last elements of a tensor in another way. Other
/// operators work row by row, or element by element.
[[nodiscard]] bool leaves_rescale_rounding(const Dispatch& dispatch);

}  // namespace kvsim
