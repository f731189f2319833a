// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "softfloat/exact.h"
#include "softfloat/format.h"

/// Between encodings and the host's own float and double, without rounding.
namespace kvsim::softfloat {

static_assert(std::numeric_limits<float>::is_iec559 && sizeof(float) == 4);
static_assert(std::numeric_limits<double>::is_iec559 && sizeof(double) == 8);

/// The encoding of a host number in binary32 or binary64.
[[nodiscard]] constexpr Bits from_float(float value) { return std::bit_cast<std::uint32_t>(value); }
[[nodiscard]] constexpr Bits from_double(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

/// The value of a code as a double: exact for every format of at most 53 bits of precision and
/// exponents within binary64's. NaN becomes the quiet NaN.
[[nodiscard]] constexpr double to_double(const Format& f, Bits a) {
  const auto value = unpack<std::uint64_t>(f, a);
  std::uint64_t magnitude = 0;
  switch (value.kind) {
    case Class::nan:
      return std::numeric_limits<double>::quiet_NaN();
    case Class::infinity:
      magnitude = std::uint64_t{2047} << 52;
      break;
    case Class::zero:
      break;
    case Class::finite: {
      const std::uint64_t significand = value.significand >> (NarrowExact::top - 52);
      const int below = -1022 - value.exponent;  // > 0: a subnormal binary64
      magnitude = below > 0
                      ? significand >> below
                      : (static_cast<std::uint64_t>(value.exponent + 1022) << 52) + significand;
      break;
    }
  }
  return std::bit_cast<double>(magnitude | (value.negative ? std::uint64_t{1} << 63 : 0));
}

/// The value of a code as a float: exact for every format of at most 24 bits of precision whose
/// numbers lie within binary32's range (all named formats but binary64).
[[nodiscard]] constexpr float to_float(const Format& f, Bits a) {
  return static_cast<float>(to_double(f, a));
}

}  // namespace kvsim::softfloat
