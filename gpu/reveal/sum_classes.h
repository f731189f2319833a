// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/reveal/reduction.h"
#include "gpu/reveal/tree_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What a few calls tell before any tree is probed.
struct SumClasses {
  /// Sums that gave the same bits wherever the same numbers were asked for, the largest class
  /// first. Together they are all sums of a call.
  std::vector<SumClass> classes;
  bool repeatable = true;  ///< the same call gave the same bits again
};

/// Asks for the same sums in every row and column, on data of which nothing is left but rounding,
/// in `calls` calls and once more to see whether a run repeats. Rows of a tile's edge, columns of
/// an edge and addresses of rows show as classes of their own.
[[nodiscard]] Result<SumClasses> find_sum_classes(Reduction& reduction, std::uint64_t seed = 1,
                                                  int calls = 2);

}  // namespace kvsim::gpu
