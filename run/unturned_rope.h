// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "run/sim_engine.h"

namespace kvsim {

/// RoPE left out, a defect on purpose: rope=none gives every position the cosine 1 and the sine 0,
/// so that queries and keys stay as they are projected.
[[nodiscard]] RopeOrigin unturned_rope();

}  // namespace kvsim
