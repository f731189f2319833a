// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/simd_level.h"
#include "tests/bench/bench_line.h"

namespace kvsim::bench {

/// The numbers of the layers, shared by the lines.
struct LayerNumbers;
[[nodiscard]] std::shared_ptr<const LayerNumbers> make_layer_numbers(bool quick);

inline constexpr const char* read_name = "reading memory";

/// How long a byte of memory takes to read; the same at every level.
[[nodiscard]] Line memory_line(const std::shared_ptr<const LayerNumbers>& numbers);

/// Decode attention with a long cache, and the linear layers of a decoder, from codes in memory.
[[nodiscard]] std::vector<Line> layer_lines(const std::shared_ptr<const LayerNumbers>& numbers,
                                            SimdLevel level);

}  // namespace kvsim::bench
