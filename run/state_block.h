// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/engine.h"
#include "softfloat/result.h"

/// What every engine checks of a block of a K/V cache, and its two layouts.
namespace kvsim {

/// Whether a cache of so many rows holds the block. Errors (usage).
[[nodiscard]] Result<bool> check_block(const StateShape& shape, std::int64_t held_rows,
                                       const StateBlock& block);

/// Whether these can stand in the block: as many numbers as it has, all of the format. Errors
/// (usage).
[[nodiscard]] Result<bool> check_block_numbers(const StateShape& shape, const StateBlock& block,
                                               std::span<const double> numbers);

/// [kv_heads][rows][head_dim] as [rows][kv_heads][head_dim].
[[nodiscard]] std::vector<double> row_major(const StateShape& shape, const StateBlock& block,
                                            std::span<const double> numbers);

}  // namespace kvsim
