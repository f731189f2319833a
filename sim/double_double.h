// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cmath>

namespace kvsim {

// Error bounds below are relative, with u = 2^−53, and hold as long as nothing overflows and no
// error term falls below 2^−1074. Source: Joldes, Muller, Popescu, "Tight and rigorous error bounds
// for basic building blocks of double-word arithmetic", ACM TOMS 44(2), 2017 ("JMP" below). Every
// operation assumes the host's default rounding, to nearest with ties to even.

/// An unevaluated sum high + low with high = the sum rounded to double: at least 106 bits of
/// precision where nothing underflows. An operation that overflows gives NaN or infinity in `high`.
struct DoubleDouble {
  double high = 0;
  double low = 0;

  constexpr DoubleDouble() = default;
  /// The value of one double, exactly.
  constexpr DoubleDouble(double value) : high(value) {}  // NOLINT: implicit, the value is exact
  constexpr DoubleDouble(double high_part, double low_part) : high(high_part), low(low_part) {}

  friend constexpr bool operator==(const DoubleDouble&, const DoubleDouble&) = default;
};

/// a + b exactly. Six operations, no condition on the magnitudes (Knuth; JMP algorithm 2).
[[nodiscard]] constexpr DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double a_part = sum - b;
  const double b_part = sum - a_part;
  return {sum, (a - a_part) + (b - b_part)};
}

/// a + b exactly, provided |a| ≥ |b| or a = 0. Three operations (Dekker; JMP algorithm 1).
[[nodiscard]] constexpr DoubleDouble fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// a · b exactly, provided |a · b| ≥ 2^−969 or it is 0 (JMP algorithm 3).
[[nodiscard]] inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

/// −a, exactly.
[[nodiscard]] constexpr DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }

/// |a|, exactly.
[[nodiscard]] constexpr DoubleDouble abs(DoubleDouble a) { return a.high < 0 ? -a : a; }

/// a + b with relative error at most 2u² (JMP algorithm 4, DWPlusFP).
[[nodiscard]] constexpr DoubleDouble operator+(DoubleDouble a, double b) {
  const DoubleDouble sum = two_sum(a.high, b);
  return fast_two_sum(sum.high, a.low + sum.low);
}

/// a + b with relative error at most 3u²/(1 − 4u), also where the terms cancel
/// (JMP algorithm 6, AccurateDWPlusDW).
[[nodiscard]] constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = two_sum(a.high, b.high);
  const DoubleDouble low = two_sum(a.low, b.low);
  const DoubleDouble partial = fast_two_sum(high.high, high.low + low.high);
  return fast_two_sum(partial.high, low.low + partial.low);
}

/// a − b with the bound of the sum.
[[nodiscard]] constexpr DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

/// a · b with relative error at most 2u² (JMP algorithm 9, DWTimesFP3).
[[nodiscard]] inline DoubleDouble operator*(DoubleDouble a, double b) {
  const DoubleDouble product = two_product(a.high, b);
  return fast_two_sum(product.high, std::fma(a.low, b, product.low));
}

/// a · b with relative error at most 5u² (JMP algorithm 11, DWTimesDW2, where 6u² is proven; 5u²:
/// Muller, Rideau, "Formalization of double-word arithmetic, and comments on [JMP]", ACM TOMS
/// 48(1), 2022).
[[nodiscard]] inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = two_product(a.high, b.high);
  const double cross = std::fma(a.low, b.high, a.high * b.low);
  return fast_two_sum(product.high, product.low + cross);
}

/// a / b with relative error at most 3.5u² (JMP algorithm 14, DWDivFP2).
[[nodiscard]] inline DoubleDouble operator/(DoubleDouble a, double b) {
  const double quotient = a.high / b;
  const DoubleDouble product = two_product(quotient, b);
  const double rest = (a.high - product.high) + (a.low - product.low);
  return fast_two_sum(quotient, rest / b);
}

/// a / b with relative error at most 16u² (JMP algorithm 17, DWDivDW2, 15u² + 56u³ there; the inner
/// product is algorithm 9 here, whose error is larger by u²/2).
[[nodiscard]] inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double quotient = a.high / b.high;
  const DoubleDouble product = b * quotient;
  const double rest = (a.high - product.high) + (a.low - product.low);
  return fast_two_sum(quotient, rest / b.high);
}

/// √a, NaN for a < 0, with relative error at most 25/8 u² (Lefèvre, Louvet, Muller, Picot, Rideau,
/// "Accurate calculation of Euclidean norms using double-word arithmetic", ACM TOMS 49(1), 2023,
/// algorithm SQRTDWtoDW).
[[nodiscard]] inline DoubleDouble sqrt(DoubleDouble a) {
  if (a.high == 0) return a;
  const double root = std::sqrt(a.high);
  const double rest = std::fma(-root, root, a.high) + a.low;
  return fast_two_sum(root, rest / (2 * root));
}

/// a < b as exact numbers; false where either is NaN.
[[nodiscard]] constexpr bool operator<(DoubleDouble a, DoubleDouble b) {
  return a.high < b.high || (a.high == b.high && a.low < b.low);
}

/// a · 2^exponent, exact unless a part leaves the range of double.
[[nodiscard]] inline DoubleDouble scale_by_power_of_two(DoubleDouble a, int exponent) {
  return {std::ldexp(a.high, exponent), std::ldexp(a.low, exponent)};
}

}  // namespace kvsim
