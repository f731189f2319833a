// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

namespace kvsim::elementary {

/// The functions of sim/elementary.h.
enum class Function : std::uint8_t {
  exp,
  exp2,
  log,
  log2,
  tanh,
  erf,
  sin,
  cos,
  reciprocal_square_root,
  pow,
};

/// A function of float arguments, computed with 500 bits and rounded to float: some 10 µs to 1 ms.
/// Finite arguments in the domain of the function; y is the exponent of pow. Error before rounding:
/// below 2^−300 of the result for any float argument. A result within 2^−200 of a 126-bit number is
/// taken to be that number: powers and logarithms that are exact (and could be a tie) are, and that
/// another result comes so close is a probabilistic argument, 2^64 arguments against 2^−200.
[[nodiscard]] float round_wide(Function function, float x, float y = 0);

}  // namespace kvsim::elementary
