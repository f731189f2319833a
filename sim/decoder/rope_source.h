// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>

#include "sim/operators/rope.h"
#include "softfloat/result.h"

namespace kvsim {

/// Gives the RoPE factors of the layers with or without a window, at positions 0 … positions − 1 or
/// beyond: those of a real back end, whose cosines are not correctly rounded. A table's angles are
/// not read and may be empty; all else is as make_rope_table() gives it, in the storage format.
using RopeSource = std::function<Result<RopeTable>(bool windowed, std::int64_t positions)>;

}  // namespace kvsim
