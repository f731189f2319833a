// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <string>

#include "softfloat/format.h"

namespace kvsim {

/// A real number, an infinity or a NaN: what an operation would give without rounding. It is
/// worked out with rational numbers, apart from softfloat, so that `eval` explains a result by
/// other means than those that made it.
struct ExactValue {
  enum class Kind : std::uint8_t { number, infinity, nan };
  using Rational = boost::multiprecision::cpp_rational;

  Kind kind = Kind::number;
  bool negative = false;      ///< sign of an infinity or a zero
  Rational number = 0;        ///< the value of Kind::number
  bool is_truncated = false;  ///< the value is irrational: |number| is below it by less than 2^−400
                              ///< of itself
};

/// The value of a code.
[[nodiscard]] ExactValue exact_value(const softfloat::Format& format, softfloat::Bits bits);

[[nodiscard]] ExactValue exact_negated(ExactValue a);
[[nodiscard]] ExactValue exact_add(const ExactValue& a, const ExactValue& b);
[[nodiscard]] ExactValue exact_multiply(const ExactValue& a, const ExactValue& b);
/// Finite nonzero over zero is an infinity; 0/0 and ∞/∞ are NaN.
[[nodiscard]] ExactValue exact_divide(const ExactValue& a, const ExactValue& b);
/// NaN below zero.
[[nodiscard]] ExactValue exact_square_root(const ExactValue& a);

/// The value in decimal: complete where it has at most 40 significant digits, otherwise the first
/// 20, truncated, and "…". "inf", "-inf" and "nan" for the others.
[[nodiscard]] std::string to_text(const ExactValue& value);

/// (result − exact) in units of the result's last place: the distance between the numbers of
/// `format` in the binade of `result`, below the normal numbers the smallest subnormal.
struct UlpError {
  bool is_defined = false;  ///< false where the result or the exact value is NaN
  double value = 0;  ///< rounded to six significant digits; ±infinity where the result is infinite
                     ///< and the exact value is not, or the other way round
};

[[nodiscard]] UlpError ulp_error(const softfloat::Format& format, softfloat::Bits result,
                                 const ExactValue& exact);

}  // namespace kvsim
