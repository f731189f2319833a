// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/unturned_rope.h"

#include <cstddef>
#include <cstdint>

#include "sim/operators/rope.h"

namespace kvsim {

RopeOrigin unturned_rope() {
  const auto open = [](const ModelConfig& config,
                       const softfloat::Format& /*storage*/) -> Result<RopeSource> {
    const std::int64_t pairs = config.head_dim / 2;
    return RopeSource([pairs](bool /*windowed*/, std::int64_t positions) -> Result<RopeTable> {
      const auto size = static_cast<std::size_t>(positions * pairs);
      RopeTable table;
      table.positions = positions;
      table.pairs = pairs;
      table.cosine.assign(size, 1.0F);
      table.sine.assign(size, 0.0F);
      return table;
    });
  };
  return {.name = "none", .detail = "", .open = open};
}

}  // namespace kvsim
