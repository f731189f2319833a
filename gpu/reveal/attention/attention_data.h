// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "gpu/reveal/attention/attention_calls.h"

namespace kvsim::gpu {

/// Numbers of one call, a function of (sizes, format, seed, number) alone, by number mod 3:
/// 0: keys at random places come in pairs, one key twice with opposite values, so that the outputs
/// are nothing but rounding of P·V; 1: the same of q·k, over pairs of elements; 2: normal numbers.
[[nodiscard]] AttentionOperands attention_data(const AttentionLayer& layer, std::uint64_t seed,
                                               std::uint64_t number);

}  // namespace kvsim::gpu
