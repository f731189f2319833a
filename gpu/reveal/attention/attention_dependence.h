// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/dependence.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What else changes the bits of a layer, on attention_data(): the same call again, another number
/// of threads, other numbers in the other queries and in the other heads, the last query alone, a
/// causal mask (which hides nothing from the last query), the address of k and v. What the layer or
/// the back end does not have is not possible. The back end's threads are `threads` afterwards.
[[nodiscard]] Result<std::vector<Dependence>> attention_dependences(Backend& backend,
                                                                    const AttentionLayer& layer,
                                                                    std::int64_t threads,
                                                                    std::uint64_t seed = 1);

}  // namespace kvsim::gpu
