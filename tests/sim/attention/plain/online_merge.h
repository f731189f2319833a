// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <vector>

#include "tests/sim/attention/plain/online_tiles.h"

namespace kvsim::plain {

/// The output of one split, normalised, with its logarithm of the sum (base 2 in FlashInfer).
struct Part {
  std::vector<float> o;
  float log = -infinity;
};

/// What a row's splits give together: O in binary32, lse in base e.
struct Merged {
  std::vector<float> o;
  float lse = -infinity;
};

/// The parts of all splits, empty ones included, as the family merges them.
[[nodiscard]] Merged merge_parts(Tiling tiling, const std::vector<Part>& parts,
                                 std::size_t head_dim);

}  // namespace kvsim::plain
