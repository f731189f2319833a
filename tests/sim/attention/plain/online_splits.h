// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "tests/sim/attention/plain/online_tiles.h"

namespace kvsim::plain {

/// Keys first … last − 1.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// The keys of split s of `splits` ≥ 2 for query i of a head, clipped to the sequence.
[[nodiscard]] KeyRange split_range(const OnlineKernel& kernel, const Problem& problem,
                                   std::int64_t splits, std::int64_t s, std::int64_t head,
                                   std::int64_t i);

}  // namespace kvsim::plain
