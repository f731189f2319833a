// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/plants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "softfloat/suggest.h"

namespace kvsim {
namespace {

constexpr std::string_view everywhere = "every pass";
constexpr std::string_view cached = "passes that read a cache";
constexpr std::string_view several = "passes of two or more rows";

constexpr auto rows = std::to_array<PlantRow>({
    {Plant::position_plus_one, "position+1", "RoPE turns new rows by one position too many",
     cached},
    {Plant::mask_missing, "mask-missing", "every query sees all keys of its pass", several},
    {Plant::window_off_by_one, "window-off-by-one", "a window is one key too wide",
     "layers with a window, beyond the window"},
    {Plant::rope_table_16_bit, "rope-table-16-bit",
     "frequencies, positions, angles and the table of RoPE are kept in binary16", everywhere},
    {Plant::stale_cache_entry, "stale-cache-entry",
     "the key and value of the row before the new ones are those of row 0", cached},
    {Plant::pad_positions, "pad-positions", "positions of new rows count the padded rows too",
     "padded passes that read a cache"},
    {Plant::causal_leak, "causal-leak", "every query sees one key beyond its own", several},
    {Plant::swapped_heads, "swapped-heads", "the first two K/V heads are exchanged in the cache",
     cached},
    {Plant::scale_doubled, "scale-doubled", "scores of attention are twice as large", everywhere},
    {Plant::soft_cap_missing, "soft-cap-missing", "scores and logits are not capped",
     "models with soft caps"},
    {Plant::wrong_epsilon, "wrong-epsilon", "norms add 1 instead of their epsilon", everywhere},
});

constexpr auto names = [] {
  std::array<std::string_view, rows.size()> list{};
  for (std::size_t i = 0; i < rows.size(); ++i) list[i] = rows[i].name;
  return list;
}();

}  // namespace

std::span<const PlantRow> plants() { return rows; }

Result<Plant> find_plant(std::string_view name) {
  const auto* const row = std::ranges::find(rows, name, &PlantRow::name);
  if (row != rows.end()) return row->plant;
  const std::string_view near = softfloat::nearest(name, names);
  return Error{ErrorKind::usage,
               fmt::format("plant '{}'; accepted: {}{}", name.substr(0, 64), fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near))};
}

std::string_view to_string(Plant plant) {
  const auto* const row = std::ranges::find(rows, plant, &PlantRow::plant);
  return row == rows.end() ? "none" : row->name;
}

}  // namespace kvsim
