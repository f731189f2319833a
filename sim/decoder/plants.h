// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "softfloat/result.h"

/// Defects that can be planted into a decoder on purpose: what a bug looks like beside rounding.
namespace kvsim {

enum class Plant : std::uint8_t {
  none,
  position_plus_one,
  mask_missing,
  window_off_by_one,
  rope_table_16_bit,
  stale_cache_entry,
  pad_positions,
  causal_leak,
  swapped_heads,
  scale_doubled,
  soft_cap_missing,
  wrong_epsilon,
};

/// One row.
struct PlantRow {
  Plant plant;
  std::string_view name;         ///< "position+1"
  std::string_view description;  ///< what is wrong, one line without a full stop
  std::string_view acts;         ///< where it shows: "passes with a cache", …
};

/// Every plant, without Plant::none.
[[nodiscard]] std::span<const PlantRow> plants();

/// The plant of that name. An error (usage) names the text, the accepted names and the near one.
[[nodiscard]] Result<Plant> find_plant(std::string_view name);

/// The name of a plant; "none".
[[nodiscard]] std::string_view to_string(Plant plant);

}  // namespace kvsim
