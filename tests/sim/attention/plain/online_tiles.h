// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// The families of docs/attention.md, "Online tiles".
enum class Tiling : std::uint8_t { fa2, fa3, fa4, flashinfer, mi300, llama_cuda };

/// A kernel: its family, the unit's name up to the formats, the device's multiprocessors, and
/// whether scale and maximum enter the exponent in two roundings (PyTorch's vendored build).
struct OnlineKernel {
  Tiling tiling = Tiling::fa2;
  std::string_view unit;
  std::int64_t multiprocessors = 0;
  bool unfused = false;
  /// The split tile even where nothing is split: FlashAttention-2 before one split had its own.
  bool split_tile = false;
};

/// The whole layer, query by query.
[[nodiscard]] Result online_tiles(const OnlineKernel& kernel, const Problem& problem);

/// The number of splits that the kernel's rule gives.
[[nodiscard]] std::int64_t number_of_splits(const OnlineKernel& kernel, const Problem& problem);

/// Columns of a tile.
[[nodiscard]] std::int64_t tile_columns(Tiling tiling, const Problem& problem, bool split);

}  // namespace kvsim::plain
