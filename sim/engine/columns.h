// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "sim/engine/simd_level.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::engine {

/// The NaN of every result: quiet, without sign and payload.
inline constexpr float canonical_nan = std::bit_cast<float>(0x7fc00000U);

}  // namespace kvsim::engine

namespace kvsim {

/// Many independent sums of products that share one factor: Σ_k a[k] × b[k][j] for every column j,
/// all in one order. `input` and `accumulator` are any formats whose numbers are all floats: every
/// named format but binary64 and e8m0.
struct ColumnsProblem {
  Order order;
  Product product = Product::rounded;
  softfloat::Format input;        ///< format of the factors
  softfloat::Format accumulator;  ///< format of rounded products, partial sums and results
  std::int64_t terms = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;   ///< floats from b[k][0] to b[k + 1][0]; ≥ columns where terms > 1
  const float* a = nullptr;  ///< [terms], numbers of `input`; null: every a[k] is 1 (a plain sum)
  const float* b = nullptr;  ///< [terms][stride], numbers of `input`
};

/// How sum_columns() runs. Nothing here changes a bit of the result.
struct EngineOptions {
  int threads = 1;  ///< ≥ 1; threads split the columns
  SimdLevel level = best_simd_level();
};

/// Computes out[j] for 0 ≤ j < columns, each with the bits that sum_products() gives on softfloat
/// with the default Mode, as a float; a NaN is the quiet NaN 0x7fc00000. Columns are lanes: they
/// advance together, each in exactly the order described.
///
/// `rounding_bound` is empty or has one entry per column: an upper bound of |out[j] − exact sum|,
/// the running bound u × Σ|x| over every rounded intermediate result x (Higham, Accuracy and
/// Stability of Numerical Algorithms, 2nd ed., section 3.3), where |x| is at least the smallest
/// normal number if x may be an inexact subnormal one. It is rigorous, its own roundings included,
/// and infinite where the result is not finite or where a format without infinity and NaN may have
/// saturated on the way.
///
/// Orders with a matrix unit (`mma`) are refused here; sum_matrix() (matrix.h) takes them.
/// `exact` items of an order run on softfloat column by column, at its speed; everything else runs
/// in lanes: binary32, binary16 and formats up to 11 bits of precision whose products float holds
/// in float lanes, the rest (fused 16-bit sums, tf32 products, e8m13, …) in double lanes with sums
/// rounded to odd.
///
/// Holds true, or an error that names a format, size, order or level which cannot be.
Result<bool> sum_columns(const ColumnsProblem& problem, std::span<float> out,
                         std::span<double> rounding_bound = {}, const EngineOptions& options = {});

/// Rounds in[i] to `format` with ties to even, overflow as the format has it, into out[i]: the bits
/// of softfloat::convert(), as a float; a NaN is the quiet NaN 0x7fc00000. `out` may be `in`. An
/// error where the lengths differ or the format has numbers that are not floats.
Result<bool> round_values(const softfloat::Format& format, std::span<const float> in,
                          std::span<float> out, SimdLevel level = best_simd_level());

}  // namespace kvsim
