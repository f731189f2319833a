// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "softfloat/format.h"

namespace kvsim::softfloat {

/// Rounding directions: the five of IEEE 754-2019 clause 4.3, round to odd, and stochastic.
enum class Rounding : std::uint8_t {
  ties_to_even,
  ties_to_away,
  toward_zero,
  toward_positive,
  toward_negative,
  to_odd,      ///< an inexact result takes the neighbour whose last significand bit is 1
  stochastic,  ///< away from zero when the top 32 discarded bits plus Mode::random carry out
};

/// What stands where the rounded result is infinite or exceeds the largest finite number.
enum class Overflow : std::uint8_t {
  automatic,  ///< IEEE 754: infinity or the largest finite number, as the rounding direction says;
              ///< where the format has no infinity, NaN stands for it; where it has no NaN either,
              ///< the largest finite number
  infinity,   ///< always infinity, whatever the direction (as matrix units do); without infinity as
              ///< automatic
  saturate,   ///< always the largest finite number
  nan,        ///< always NaN; where the format has none, the largest finite number
};

/// What happens to subnormal numbers.
enum class Subnormals : std::uint8_t {
  keep,           ///< gradual underflow (IEEE 754)
  flush_results,  ///< a tiny result becomes zero of its sign, with flags underflow and inexact
  flush_inputs,   ///< a subnormal operand is read as zero of its sign, without a flag
  flush_both,
};

/// When a result counts as tiny (IEEE 754-2019 clause 7.5).
enum class Tininess : std::uint8_t { after_rounding, before_rounding };

/// Everything that can change a rounded result. Always an argument, never global.
struct Mode {
  Rounding rounding = Rounding::ties_to_even;
  Overflow overflow = Overflow::automatic;
  Subnormals subnormals = Subnormals::keep;
  Tininess tininess = Tininess::after_rounding;
  std::uint32_t random = 0;  ///< stochastic only: 32 uniform bits drawn by the caller

  friend constexpr bool operator==(const Mode&, const Mode&) = default;
};

/// The five exceptions of IEEE 754-2019 clause 7, returned with every result.
struct Flags {
  bool invalid = false;
  bool division_by_zero = false;
  bool overflow = false;
  bool underflow = false;  ///< tiny and inexact
  bool inexact = false;

  friend constexpr bool operator==(const Flags&, const Flags&) = default;
  constexpr Flags& operator|=(const Flags& other) {
    invalid |= other.invalid;
    division_by_zero |= other.division_by_zero;
    overflow |= other.overflow;
    underflow |= other.underflow;
    inexact |= other.inexact;
    return *this;
  }
};

/// An encoding and the flags that its operation raised.
struct Rounded {
  Bits bits = 0;
  Flags flags;

  friend constexpr bool operator==(const Rounded&, const Rounded&) = default;
};

}  // namespace kvsim::softfloat
