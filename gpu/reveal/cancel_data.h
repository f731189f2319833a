// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/reveal/reduction.h"

namespace kvsim::gpu {

/// The operands of one call.
struct CallData {
  std::vector<float> left;   ///< [rows][terms]
  std::vector<float> right;  ///< [columns][terms]
};

/// What the numbers of a call look like.
enum class DataKind : std::uint8_t {
  /// Half of the terms, at random places, are the negated copies of the other half: what comes out
  /// is nothing but rounding. Numbers of three binades, of nine where they are short.
  cancel,
  wide,  ///< as cancel, over 12 or 16 binades
  tiny,  ///< as cancel, so small that products, or where the format is wide sums, are subnormal
};

/// Numbers for one call, a function of (kind, seed, number) and the shape alone.
/// `repeated`: every row has the numbers of row 0, every column those of column 0, so that equal
/// sums are asked for everywhere.
[[nodiscard]] CallData cancel_data(const Reduction& reduction, DataKind kind, std::uint64_t seed,
                                   std::uint64_t number, bool repeated = false);

}  // namespace kvsim::gpu
