// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/engine/columns.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// Where a random matrix lies among the numbers of a seed, and what its numbers look like.
struct RandomWeights {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;   ///< one for each matrix; the high bit is set for these by the caller
  softfloat::Format storage;  ///< binary32 or narrower
  float deviation = 1;        ///< standard deviation before rounding to `storage`
};

/// Standard deviation of the sum of four uniform bytes: √(4 (256² − 1) ÷ 12).
inline constexpr double four_bytes_deviation = 147.80054127099805;

/// Fills `out` with nearly normal numbers, fast enough for the weights of whole models. Number i
/// comes from word i mod 4 of philox_block(seed, stream, first ÷ 4 + i ÷ 4): the sum of its four
/// bytes less 510, an integer, times the binary32 number deviation ÷ four_bytes_deviation, rounded
/// to binary32 and then to `storage`. Beyond 3.45 deviations there is nothing; kurtosis is 2.7.
/// `first` is the place of out[0] in the matrix, a multiple of 4. Nothing in `options` changes a
/// bit. Errors of round_values().
Result<bool> fill_random_weights(const RandomWeights& weights, std::int64_t first,
                                 std::span<float> out, const EngineOptions& options = {});

}  // namespace kvsim
