// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/reveal.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The sums of one row at one number of rows, beside those of the same row elsewhere.
struct RowAmongOthers {
  std::int64_t rows = 1;
  Revelation found;                   ///< how the sums of this shape are added
  std::vector<float> sums;            ///< of row 0, as the back end gave them
  std::int64_t compared = 0;          ///< sums of row 0
  std::int64_t different = 0;         ///< from the first number of rows
  std::int64_t unlike_replay = 0;     ///< from the replay of what was revealed
  std::int64_t first_different = -1;  ///< the first column in which they are; -1: none
};

/// One and the same row of standard normal numbers as row 0 of calls of several numbers of rows,
/// the other rows being others and the columns the same: what the back end gives for it, and its
/// replay in the order that is revealed for each number of rows. Sums without a model (not
/// explained) count as unlike. Errors: as make_reduction() and reveal().
[[nodiscard]] Result<std::vector<RowAmongOthers>> compare_row(Backend& backend,
                                                              ReductionShape shape,
                                                              std::span<const std::int64_t> rows,
                                                              const RevealOptions& options = {});

}  // namespace kvsim::gpu
