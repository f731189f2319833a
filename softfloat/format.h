// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

namespace kvsim::softfloat {

/// An encoding, right-aligned in 64 bits; its width comes from the Format. Unused bits are zero.
using Bits = std::uint64_t;

/// Which codes of a format are not numbers.
enum class Specials : std::uint8_t {
  ieee,                  ///< all-ones exponent: infinity (significand 0) and NaN, as in IEEE 754
  nan_only,              ///< no infinity; all-ones exponent and significand is NaN (OCP e4m3)
  none,                  ///< every code is a number (OCP e3m2, e2m3, e2m1)
  nan_is_negative_zero,  ///< no infinity, no −0; the code of −0 is the only NaN ("fnuz")
  exponent_only,         ///< OCP e8m0: unsigned power of two, no zero; all ones is NaN
};

/// A binary floating-point format as a value: five numbers from which everything else follows.
/// A number is (−1)^sign × significand × 2^(exponent − precision + 1) with
/// emin ≤ exponent ≤ emax and significand < 2^precision.
struct Format {
  std::uint8_t exponent_bits = 0;  ///< width of the exponent field
  std::uint8_t precision = 0;      ///< p: significand bits, the hidden bit included
  std::int16_t bias = 0;           ///< exponent = field − bias
  Specials specials = Specials::ieee;
  bool has_sign = true;

  friend constexpr bool operator==(const Format&, const Format&) = default;

  /// Bits of an encoding.
  [[nodiscard]] constexpr int width() const {
    return (has_sign ? 1 : 0) + exponent_bits + precision - 1;
  }
  /// Bits of the trailing significand field.
  [[nodiscard]] constexpr int trailing_bits() const { return precision - 1; }
  /// True when the all-zero code is zero and field 0 holds subnormals (every format but e8m0).
  [[nodiscard]] constexpr bool has_zero() const { return specials != Specials::exponent_only; }
  [[nodiscard]] constexpr bool has_infinity() const { return specials == Specials::ieee; }
  [[nodiscard]] constexpr bool has_nan() const { return specials != Specials::none; }
  [[nodiscard]] constexpr bool has_negative_zero() const {
    return has_sign && specials != Specials::nan_is_negative_zero;
  }
  /// Smallest exponent of a normal number.
  [[nodiscard]] constexpr int emin() const { return (has_zero() ? 1 : 0) - bias; }
  /// Exponent of the largest finite number.
  [[nodiscard]] constexpr int emax() const {
    const int top = (1 << exponent_bits) - 1 - bias;
    return has_infinity() || specials == Specials::exponent_only ? top - 1 : top;
  }

  [[nodiscard]] constexpr Bits code_mask() const {
    return width() == 64 ? ~Bits{0} : (Bits{1} << width()) - 1;
  }
  [[nodiscard]] constexpr Bits sign_bit() const {
    return has_sign ? Bits{1} << (width() - 1) : Bits{0};
  }
  [[nodiscard]] constexpr Bits trailing_mask() const { return (Bits{1} << trailing_bits()) - 1; }
  [[nodiscard]] constexpr Bits magnitude_mask() const { return code_mask() & ~sign_bit(); }

  /// The code of the largest positive finite number.
  [[nodiscard]] constexpr Bits max_finite() const {
    switch (specials) {
      case Specials::ieee:
        return infinity() - 1;
      case Specials::nan_only:
      case Specials::exponent_only:
        return magnitude_mask() - 1;
      case Specials::none:
      case Specials::nan_is_negative_zero:
        break;
    }
    return magnitude_mask();
  }
  /// The code of +infinity. Only where has_infinity().
  [[nodiscard]] constexpr Bits infinity() const {
    return ((Bits{1} << exponent_bits) - 1) << trailing_bits();
  }
  /// The one NaN that results carry: positive, quiet, payload 0. Only where has_nan().
  [[nodiscard]] constexpr Bits canonical_nan() const {
    switch (specials) {
      case Specials::ieee:
        return infinity() | (Bits{1} << (trailing_bits() - 1));
      case Specials::nan_is_negative_zero:
        return sign_bit();
      default:
        break;
    }
    return magnitude_mask();
  }
};

}  // namespace kvsim::softfloat
