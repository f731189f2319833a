// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Codes of small numbers by closed forms, for tests that must not trust softfloat.

#include <bit>
#include <cstdint>
#include <cstdlib>

#include "softfloat/format.h"

namespace kvsim {

/// The code of ±2^exponent, which must be a number of the format.
inline softfloat::Bits power_of_two(const softfloat::Format& f, int exponent,
                                    bool negative = false) {
  const int emin = (f.specials == softfloat::Specials::exponent_only ? 0 : 1) - f.bias;
  const int trailing = f.precision - 1;
  const softfloat::Bits magnitude =
      exponent >= emin ? static_cast<softfloat::Bits>(exponent + f.bias) << trailing
                       : softfloat::Bits{1} << (exponent - emin + trailing);
  const softfloat::Bits sign = softfloat::Bits{1} << (f.exponent_bits + trailing);
  return magnitude | (negative ? sign : 0);
}

/// True where 2^exponent is a number of the format.
inline bool has_power_of_two(const softfloat::Format& f, int exponent) {
  const int top = (1 << f.exponent_bits) - 1 - f.bias;
  const int largest = f.specials == softfloat::Specials::ieee ? top - 1 : top;
  return exponent >= 2 - f.bias - f.precision && exponent <= largest;
}

/// The code of an integer that is a number of the format.
inline softfloat::Bits integer(const softfloat::Format& f, long value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<std::uint64_t>(std::abs(value));
  const int log2 = static_cast<int>(std::bit_width(magnitude)) - 1;
  const softfloat::Bits fraction =
      (magnitude << (f.precision - 1) >> log2) & ((softfloat::Bits{1} << (f.precision - 1)) - 1);
  return power_of_two(f, log2, value < 0) | fraction;
}

}  // namespace kvsim
