// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/reduction.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Whether something beside the numbers of a sum changes its bits.
struct Dependence {
  std::string what;      ///< "2 threads", "other rows", "8 bytes off a multiple of 64"
  bool possible = true;  ///< false: the back end or the shape has nothing to change
  std::int64_t compared = 0;
  std::int64_t different = 0;
};

/// The sums of one call again: with two threads, with other numbers in the other rows, and with the
/// operand that the columns stand in moved by one, two and four elements off a multiple of 64
/// bytes. The back end's threads are set to `threads` afterwards.
[[nodiscard]] Result<std::vector<Dependence>> find_dependences(Backend& backend,
                                                               const ReductionShape& shape,
                                                               std::int64_t threads,
                                                               std::uint64_t seed = 1);

/// Sizes that give the same bits in row 0, column 0: from `first` to `last`.
struct SizeClass {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Which size of a shape a sweep changes.
enum class SweptSize : std::uint8_t { rows, columns };

/// The sizes from `first` to `last` grouped by the bits of the sums that all of them have, in a row
/// of fixed numbers: neighbouring sizes whose bits differ belong to different classes. Up to
/// `every` sizes are all tried; beyond that ends are tried and boundaries found by bisection.
[[nodiscard]] Result<std::vector<SizeClass>> sweep(Backend& backend, ReductionShape shape,
                                                   SweptSize swept, std::int64_t first,
                                                   std::int64_t last, std::int64_t every = 64,
                                                   std::uint64_t seed = 1);

}  // namespace kvsim::gpu
