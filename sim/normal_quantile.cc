// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/normal_quantile.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kvsim {
namespace {

// Coefficients from the constant term up.
using Polynomial = std::array<double, 8>;

double evaluate(const Polynomial& coefficients, double x) {
  double sum = coefficients.back();
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

constexpr Polynomial central_numerator = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                          1.9715909503065514427e3, 1.3731693765509461125e4,
                                          4.5921953931549871457e4, 6.7265770927008700853e4,
                                          3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr Polynomial central_denominator = {1.0,
                                            4.2313330701600911252e1,
                                            6.8718700749205790830e2,
                                            5.3941960214247511077e3,
                                            2.1213794301586595867e4,
                                            3.9307895800092710610e4,
                                            2.8729085735721942674e4,
                                            5.2264952788528545610e3};
constexpr Polynomial middle_numerator = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                         5.76949722146069140550e0,  3.64784832476320460504e0,
                                         1.27045825245236838258e0,  2.41780725177450611770e-1,
                                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Polynomial middle_denominator = {1.0,
                                           2.05319162663775882187e0,
                                           1.67638483018380384940e0,
                                           6.89767334985100004550e-1,
                                           1.48103976427480074590e-1,
                                           1.51986665636164571966e-2,
                                           5.47593808499534494600e-4,
                                           1.05075007164441684324e-9};
constexpr Polynomial far_numerator = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                      1.78482653991729133580e0,  2.96560571828504891230e-1,
                                      2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Polynomial far_denominator = {1.0,
                                        5.99832206555887937690e-1,
                                        1.36929880922735805310e-1,
                                        1.48753612908506148525e-2,
                                        7.86869131145613259100e-4,
                                        1.84631831751005468180e-5,
                                        1.42151175831644588870e-7,
                                        2.04426310338993978564e-15};

}  // namespace

double log_positive(double x) {
  constexpr std::uint64_t exponent_mask = 0x7ff0'0000'0000'0000;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa =
      std::bit_cast<double>((bits & ~exponent_mask) | std::bit_cast<std::uint64_t>(1.0));
  if (mantissa > 0x1.6a09e667f3bcdp+0) {  // √2
    mantissa *= 0.5;
    ++exponent;
  }
  // |s| ≤ 0.1716; the first term left out, s^23/23, is below 2^−60 of the sum.
  const double f = mantissa - 1;
  const double s = f / (mantissa + 1);
  const double square = s * s;
  double tail = 1.0 / 21;
  for (int odd = 19; odd >= 3; odd -= 2) tail = tail * square + 1.0 / odd;
  // 2s = f − f·s keeps the large term exact.
  const double log_mantissa = f - s * (f - 2 * (square * tail));
  constexpr double ln2_high = 0x1.62e42fefa4p-1;  // 40 bits: its product with an exponent is exact
  constexpr double ln2_low = -0x1.8432a1b0e2634p-43;
  return exponent * ln2_high + (log_mantissa + exponent * ln2_low);
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (evaluate(central_numerator, r) / evaluate(central_denominator, r));
  }
  const double r = std::sqrt(-log_positive(q < 0 ? p : 1 - p));
  const double magnitude =
      r <= 5 ? evaluate(middle_numerator, r - 1.6) / evaluate(middle_denominator, r - 1.6)
             : evaluate(far_numerator, r - 5) / evaluate(far_denominator, r - 5);
  return q < 0 ? -magnitude : magnitude;
}

}  // namespace kvsim
