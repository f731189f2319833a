// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/rope_tables.h"

#include <algorithm>
#include <utility>

namespace kvsim::decoder {

Result<const RopeTable*> RopeTables::find(const LayerPosition& layer, std::int64_t head_dim,
                                          std::int64_t last) {
  auto entry = std::ranges::find_if(entries_, [&](const Entry& each) {
    return each.base == layer.rope_base && each.frequencies == layer.custom_frequencies;
  });
  if (entry == entries_.end()) {
    entries_.push_back({layer.rope_base, layer.custom_frequencies, {}});
    entry = entries_.end() - 1;
  }
  if (entry->table.positions <= last) {
    // A little longer than asked for, so that token after token finds it long enough.
    const std::int64_t positions = last + 1 + std::min<std::int64_t>(last, 256);
    Result<RopeTable> made =
        source_ ? source_(layer.window > 0, positions)
                : make_rope_table(kernel_, {.storage = storage_,
                                            .rotated = head_dim,
                                            .base = layer.rope_base,
                                            .positions = positions,
                                            .custom_frequencies = layer.custom_frequencies});
    if (!made) return made.error();
    entry->table = std::move(*made);
  }
  return static_cast<const RopeTable*>(&entry->table);
}

}  // namespace kvsim::decoder
