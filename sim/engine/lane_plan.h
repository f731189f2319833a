// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/sum.h"
#include "softfloat/format.h"

namespace kvsim::engine {

/// Float lanes of a vector, at most.
inline constexpr std::size_t most_lanes = 16;

/// How lanes round a result to the accumulator format.
enum class LaneKind : std::uint8_t {
  binary32,   ///< float lanes, whose own rounding it is
  binary16,   ///< float lanes, then the CPU's float-to-half conversion (F16C) or as `narrow`
  truncated,  ///< float lanes, then integer rounding: formats that are binary32 with a shorter
              ///< significand (bfloat16, tf32), so that subnormals and overflow come out of the
              ///< carry
  narrow,  ///< float lanes, then rounding by adding and subtracting a power of two: formats with a
           ///< smaller exponent range than binary32
  wide,    ///< double lanes with additions rounded to odd, then as `narrow`
};

/// Everything a kernel needs to know of the formats. All numbers are exact.
struct LanePlan {
  LaneKind kind = LaneKind::wide;
  Product product = Product::rounded;
  bool product_is_exact = false;  ///< every product is a number of the accumulator format
  bool clears_negative_zero = false;
  int discarded_bits = 0;      ///< truncated: significand bits of binary32 that go
  double smallest_normal = 0;  ///< 2^emin
  double largest_finite = 0;
  double overflow_result =
      0;                  ///< what stands for a larger magnitude: infinity, NaN or largest_finite
  double nan_result = 0;  ///< NaN, or largest_finite where the format has none
  double shift = 0;       ///< narrow, wide: 2^(lane precision − p)
  double saturation = 0;  ///< magnitudes from here on have no error bound; usually infinity
  double unit_roundoff = 0;  ///< u = 2^−p
};

/// The plan for sums of products whose factors and partial sums have these formats, each of which
/// must pass lanes_hold(). `plain_terms`: one factor of every product is 1.
[[nodiscard]] LanePlan plan_lanes(Product product, const softfloat::Format& input,
                                  const softfloat::Format& accumulator, bool plain_terms);

/// The plan for rounding any float to a format that passes lanes_hold().
[[nodiscard]] LanePlan plan_rounding(const softfloat::Format& format);

/// Whether every number of the format is a float, with a sign and a zero: all named formats but
/// binary64 and e8m0.
[[nodiscard]] bool lanes_hold(const softfloat::Format& format);

}  // namespace kvsim::engine
