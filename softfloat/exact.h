// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "softfloat/format.h"
#include "softfloat/rounding.h"
#include "softfloat/wide.h"

namespace kvsim::softfloat {

enum class Class : std::uint8_t { zero, finite, infinity, nan };

/// A value before rounding. Where `kind` is finite it is
///   (−1)^negative × significand × 2^(exponent − top)
/// with the leading one of `significand` at bit `top`, so `exponent` is ⌊log2 |value|⌋.
/// The lowest bit is sticky: when it is set the true value may lie anywhere strictly between the
/// two even significands beside it. Every rounding of this library looks at least two bits above
/// it.
template <Significand S>
struct BasicExact {
  static constexpr int top = digits<S> - 2;  // one bit of headroom for the carry of an addition

  Class kind = Class::zero;
  bool negative = false;
  int exponent = 0;
  S significand = 0;
};

using NarrowExact = BasicExact<std::uint64_t>;  ///< operations on formats with precision ≤ 24
using Exact = BasicExact<uint128>;              ///< everything up to binary64

/// A finite exact value from an integer: significand × 2^lsb_exponent, plus less than one unit of
/// `lsb_exponent` (and more than nothing) where `sticky`. Significand 0 gives zero; with `sticky`
/// the significand must have at least `precision + 34` significant bits for every rounding of the
/// target to be decided (34: two for the nearest modes, 32 for stochastic rounding).
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> make_exact(bool negative, S significand, int lsb_exponent,
                                                 bool sticky = false) {
  using Value = BasicExact<S>;
  if (significand == 0) return {Class::zero, negative, 0, 0};
  const int shift = leading_zeros(significand) - (digits<S> - 1 - Value::top);
  const int exponent = lsb_exponent + Value::top - shift;
  S normalized =
      shift >= 0 ? static_cast<S>(significand << shift) : shift_right_sticky(significand, -shift);
  if (sticky) normalized |= 1;
  return {Class::finite, negative, exponent, normalized};
}

/// True for a NaN whose quiet bit is clear. Only IEEE-style formats have such codes.
[[nodiscard]] constexpr bool is_signaling_nan(const Format& f, Bits a) {
  if (f.specials != Specials::ieee) return false;
  const Bits magnitude = a & f.magnitude_mask();
  return magnitude > f.infinity() && (magnitude & (Bits{1} << (f.trailing_bits() - 1))) == 0;
}

/// The exact value of a code. With flush_inputs or flush_both a subnormal reads as zero of its
/// sign.
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> unpack(const Format& f, Bits a,
                                             Subnormals subnormals = Subnormals::keep) {
  using Value = BasicExact<S>;
  const bool negative = (a & f.sign_bit()) != 0;
  const Bits magnitude = a & f.magnitude_mask();
  switch (f.specials) {
    case Specials::ieee:
      if (magnitude >= f.infinity()) {
        return {magnitude == f.infinity() ? Class::infinity : Class::nan, negative, 0, 0};
      }
      break;
    case Specials::nan_only:
    case Specials::exponent_only:
      if (magnitude == f.magnitude_mask()) return {Class::nan, negative, 0, 0};
      break;
    case Specials::nan_is_negative_zero:
      if (a == f.sign_bit()) return {Class::nan, negative, 0, 0};
      break;
    case Specials::none:
      break;
  }
  const int field = static_cast<int>(magnitude >> f.trailing_bits());
  const Bits trailing = magnitude & f.trailing_mask();
  if (field == 0 && f.has_zero()) {
    const bool flush =
        subnormals == Subnormals::flush_inputs || subnormals == Subnormals::flush_both;
    if (trailing == 0 || flush) return {Class::zero, negative, 0, 0};
    return make_exact<S>(negative, static_cast<S>(trailing), f.emin() - f.trailing_bits());
  }
  const S significand = static_cast<S>(trailing | (Bits{1} << f.trailing_bits()));
  return {Class::finite, negative, field - f.bias,
          static_cast<S>(significand << (Value::top - f.trailing_bits()))};
}

}  // namespace kvsim::softfloat
