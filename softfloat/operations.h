// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "softfloat/exact.h"
#include "softfloat/rounding.h"
#include "softfloat/wide.h"

/// Exact operations on exact values: what comes before the one rounding. Nothing here rounds; what
/// does not fit is collected in the sticky bit, far below every bit that a rounding looks at.
namespace kvsim::softfloat::detail {

/// Operands come from formats of at most this many bits of precision.
template <Significand S>
inline constexpr int operand_bits = digits<S> == 64 ? 24 : 53;

/// The significand of an operand as a small integer of `operand_bits` bits.
template <Significand S>
[[nodiscard]] constexpr S operand(const BasicExact<S>& a) {
  return static_cast<S>(a.significand >> (BasicExact<S>::top + 1 - operand_bits<S>));
}

/// Sum of two finite values. An exact zero takes the sign that the rounding direction says.
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> add_finite(BasicExact<S> a, BasicExact<S> b,
                                                 Rounding rounding) {
  using Value = BasicExact<S>;
  if (a.exponent < b.exponent) {
    const Value swap = a;
    a = b;
    b = swap;
  }
  const S smaller = shift_right_sticky(b.significand, a.exponent - b.exponent);
  const int lsb_exponent = a.exponent - Value::top;
  if (a.negative == b.negative) {
    return make_exact(a.negative, static_cast<S>(a.significand + smaller), lsb_exponent);
  }
  if (a.significand == smaller) {
    return {Class::zero, rounding == Rounding::toward_negative, 0, 0};
  }
  if (a.significand > smaller) {
    return make_exact(a.negative, static_cast<S>(a.significand - smaller), lsb_exponent);
  }
  return make_exact(b.negative, static_cast<S>(smaller - a.significand), lsb_exponent);
}

/// Sum of two values that are zero or finite.
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> add_exact(const BasicExact<S>& a, const BasicExact<S>& b,
                                                Rounding rounding) {
  if (a.kind == Class::zero && b.kind == Class::zero) {
    const bool negative =
        a.negative == b.negative ? a.negative : rounding == Rounding::toward_negative;
    return {Class::zero, negative, 0, 0};
  }
  if (a.kind == Class::zero) return b;
  if (b.kind == Class::zero) return a;
  return add_finite(a, b, rounding);
}

/// Product of two operands that are zero or finite; exact, without a sticky bit.
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> multiply_exact(const BasicExact<S>& a,
                                                     const BasicExact<S>& b) {
  const bool negative = a.negative != b.negative;
  if (a.kind == Class::zero || b.kind == Class::zero) return {Class::zero, negative, 0, 0};
  const int lsb_exponent = a.exponent + b.exponent - 2 * (operand_bits<S> - 1);
  return make_exact(negative, static_cast<S>(operand(a) * operand(b)), lsb_exponent);
}

/// Quotient of two finite operands, to about digits − 4 bits and a sticky bit.
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> divide_exact(const BasicExact<S>& a, const BasicExact<S>& b) {
  // Two steps of long division, so that every intermediate fits: operand_bits + chunk < digits.
  constexpr int chunk = digits<S> == 64 ? 30 : 60;
  const S divisor = operand(b);
  const S first = static_cast<S>(operand(a) << chunk);
  const S first_rest = static_cast<S>(first % divisor);
  const S second = static_cast<S>(first_rest << chunk);
  const S quotient = static_cast<S>(((first / divisor) << chunk) + second / divisor);
  const bool sticky = second % divisor != 0;
  return make_exact(a.negative != b.negative, quotient, a.exponent - b.exponent - 2 * chunk,
                    sticky);
}

/// Square root of a positive finite operand, to about digits − 6 bits and a sticky bit.
template <Significand S>
[[nodiscard]] constexpr BasicExact<S> square_root_exact(const BasicExact<S>& a) {
  constexpr int root_fraction_bits = digits<S> == 64 ? 58 : 120;
  constexpr int fraction_bits = operand_bits<S> + operand_bits<S> % 2;  // even
  // radicand in [1, 4) with `fraction_bits` fraction bits, exponent even
  S radicand = static_cast<S>(operand(a) << (fraction_bits - (operand_bits<S> - 1)));
  int exponent = a.exponent;
  if (exponent % 2 != 0) {
    radicand = static_cast<S>(radicand << 1);
    --exponent;
  }
  S root = 0;
  S rest = 0;
  for (int i = 0; i <= root_fraction_bits; ++i) {  // one root bit for two radicand bits
    const int position = fraction_bits - 2 * i;
    const S pair = position >= 0 ? static_cast<S>((radicand >> position) & 3) : S{0};
    rest = static_cast<S>((rest << 2) | pair);
    const S trial = static_cast<S>((root << 2) | 1);
    root = static_cast<S>(root << 1);
    if (rest >= trial) {
      rest = static_cast<S>(rest - trial);
      root |= 1;
    }
  }
  return make_exact(false, root, exponent / 2 - root_fraction_bits, rest != 0);
}

}  // namespace kvsim::softfloat::detail
