// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/elementary_double.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/elementary_constants.h"

namespace kvsim::elementary {
namespace {

constexpr double round_shift = 0x1.8p52;  // adding it rounds to an integer, ties to even

/// c[0] + c[1] x + c[2] x² + …
double polynomial(std::span<const double> c, double x) {
  double sum = c.back();
  for (std::size_t i = c.size() - 1; i-- > 0;) sum = c[i] + x * sum;
  return sum;
}

/// A finite x > 0 as exponent and (m − 1)/(m + 1), x = 2^exponent · m, √½ ≤ m < √2. Exact but for
/// the division: m of a float has 24 bits.
struct LogParts {
  double exponent;
  double quotient;
};

LogParts split_log(double x) {
  constexpr std::uint64_t one = std::uint64_t{1023} << 52;
  constexpr std::uint64_t square_root_half = 0x3fe6a09e667f3bcd;
  constexpr std::uint64_t fraction_mask = (std::uint64_t{1} << 52) - 1;
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (one - square_root_half);
  const double m = std::bit_cast<double>((shifted & fraction_mask) + square_root_half);
  return {static_cast<double>(static_cast<std::int64_t>(shifted >> 52) - 1023), (m - 1) / (m + 1)};
}

/// ln((1 + s)/(1 − s)) for |s| ≤ 0.1716: 2s (1 + s²/3 + s⁴/5 + …); the first term left out is
/// s^22/23 < 2^−60.
double log_of_quotient(double s) {
  const double square = s * s;
  double sum = 0;
  for (int n = 21; n >= 3; n -= 2) sum = square * (1.0 / n + sum);
  return 2 * (s + s * sum);
}

/// Angle = quarter · π/2 + rest with |rest| ≤ π/4 and a little.
struct Reduced {
  int quarter;
  double rest;
};

/// The first product and difference are exact, the second product is exact. No float comes closer
/// than 2^−31 to a multiple of π/2 other than 0, so that the rest keeps a relative error of 2^−52.
Reduced reduce_angle(double x) {
  const double count = (x * two_over_pi + round_shift) - round_shift;
  const double middle = (x - count * half_pi_high) - count * half_pi_middle;
  return {static_cast<int>(static_cast<std::int64_t>(count) & 3), middle - count * half_pi_low};
}

double sine_of_rest(double r) {  // Taylor, up to r^17
  const double square = r * r;
  double sum = 0;
  for (int n = 17; n >= 3; n -= 2) sum = -square / (n * (n - 1)) * (1 + sum);
  return r + r * sum;
}

double cosine_of_rest(double r) {  // Taylor, up to r^18
  const double square = r * r;
  double sum = 0;
  for (int n = 18; n >= 2; n -= 2) sum = -square / (n * (n - 1)) * (1 + sum);
  return 1 + sum;
}

double sine_of_quarter(const Reduced& angle) {
  const double value =
      (angle.quarter & 1) != 0 ? cosine_of_rest(angle.rest) : sine_of_rest(angle.rest);
  return (angle.quarter & 2) != 0 ? -value : value;
}

}  // namespace

double exp2_double(double t) {
  const double shifted = t + round_shift;
  const double f = t - (shifted - round_shift);  // exact
  const double power = 1 + f * polynomial(exp2_polynomial, f);
  // The low bits of `shifted` are the integer in two's complement.
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(power) + exponent);
}

double exp_double(double x) { return exp2_double(x * log2_e); }

double log_double(double x) {
  const LogParts parts = split_log(x);
  return parts.exponent * ln_2 + log_of_quotient(parts.quotient);
}

double log2_double(double x) {
  const LogParts parts = split_log(x);
  return parts.exponent + log_of_quotient(parts.quotient) * log2_e;
}

double tanh_double(double x) {
  const double twice = std::min(2 * std::fabs(x), 60.0);
  double magnitude = 0;
  if (twice < 0.35) {  // e^u − 1 = u + u²/2! + …: no cancellation
    const double less_one =
        twice + twice * twice * polynomial(std::span(inverse_factorials), twice);
    magnitude = less_one / (less_one + 2);
  } else {
    magnitude = 1 - 2 / (exp_double(twice) + 1);
  }
  return std::copysign(magnitude, x);
}

double erf_double(double x) {
  const double magnitude = std::fabs(x);
  if (magnitude >= 4) return std::copysign(1.0, x);
  if (magnitude < 0.5) return x * polynomial(erf_series, x * x);
  const auto interval = static_cast<std::size_t>(magnitude * 4);  // 2 … 15
  const double centre = (static_cast<double>(interval) + 0.5) / 4;
  return std::copysign(polynomial(erf_taylor[interval - 2], magnitude - centre), x);
}

double sin_double(double x) { return sine_of_quarter(reduce_angle(x)); }

double cos_double(double x) {
  const Reduced angle = reduce_angle(x);
  return sine_of_quarter({angle.quarter + 1, angle.rest});
}

}  // namespace kvsim::elementary
