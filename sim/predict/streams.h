// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

/// Random streams of predict's linear layers; each has a stream for x and one for w.
namespace kvsim::streams {

inline constexpr std::uint64_t k_projection = 0x7072656431;
inline constexpr std::uint64_t v_projection = 0x7072656432;
inline constexpr std::uint64_t qkv_projection = 0x7072656433;
inline constexpr std::uint64_t output_projection = 0x7072656434;
inline constexpr std::uint64_t mlp_up = 0x7072656435;
inline constexpr std::uint64_t mlp_down = 0x7072656436;
inline constexpr std::uint64_t output_matrix = 0x7072656437;

}  // namespace kvsim::streams
