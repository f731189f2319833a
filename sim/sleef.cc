// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/sleef.h"

#include <cmath>
#include <limits>

namespace kvsim {
namespace {

/// high + low, |low| no more than about half a unit in the last place of high. The functions below
/// are the usual ones of Dekker and Knuth, in the order of operations of src/common/df.h.
struct FloatPair {
  float high = 0;
  float low = 0;
};

/// a + b for any a and b.
FloatPair add_any(FloatPair a, float b) {
  const float sum = a.high + b;
  const float part = sum - a.high;
  return {sum, (a.high - (sum - part)) + (b - part) + a.low};
}
FloatPair add_any(FloatPair a, FloatPair b) {
  const float sum = a.high + b.high;
  const float part = sum - a.high;
  return {sum, (a.high - (sum - part)) + (b.high - part) + (a.low + b.low)};
}

/// a + b for |a| ≥ |b|.
FloatPair add_smaller(FloatPair a, FloatPair b) {
  const float sum = a.high + b.high;
  return {sum, (((a.high - sum) + b.high) + a.low) + b.low};
}
FloatPair add_smaller(FloatPair a, float b) {
  const float sum = a.high + b;
  return {sum, ((a.high - sum) + b) + a.low};
}
FloatPair add_smaller(float a, FloatPair b) {
  const float sum = a + b.high;
  return {sum, ((a - sum) + b.high) + b.low};
}

FloatPair multiply(FloatPair a, float b) {
  const float product = a.high * b;
  return {product, std::fma(a.low, b, std::fma(a.high, b, -product))};
}
FloatPair multiply(FloatPair a, FloatPair b) {
  const float product = a.high * b.high;
  const float rest = std::fma(a.high, b.high, -product);
  return {product, std::fma(a.high, b.low, std::fma(a.low, b.high, rest))};
}
FloatPair square(FloatPair a) {
  const float product = a.high * a.high;
  const float rest = std::fma(a.high, a.high, -product);
  return {product, std::fma(a.high + a.high, a.low, rest)};
}

FloatPair reciprocal(FloatPair a) {
  const float quotient = 1 / a.high;
  const float rest = std::fma(-a.low, quotient, std::fma(-a.high, quotient, 1.0F));
  return {quotient, quotient * rest};
}
FloatPair divide(FloatPair a, FloatPair b) {
  const float inverse = 1 / b.high;
  const float quotient = a.high * inverse;
  const float product_rest = std::fma(inverse, a.high, -quotient);
  const float inverse_rest = std::fma(-b.low, inverse, std::fma(-b.high, inverse, 1.0F));
  return {quotient, std::fma(quotient, inverse_rest, std::fma(a.low, inverse, product_rest))};
}

/// exp x for 0 ≤ x < 9: 2^n times a polynomial of degree 7 in x − n ln 2.
FloatPair exp_pair(float x) {
  constexpr float log2_e = 0x1.715476p+0F;
  constexpr float ln_2_upper = 0.693145751953125F;  // its product with n is exact
  constexpr float ln_2_lower = 1.428606765330187045e-06F;
  const float n = std::nearbyint(x * log2_e);
  const FloatPair r = add_any(add_any(FloatPair{x, 0}, n * -ln_2_upper), n * -ln_2_lower);
  float tail = std::fma(0.1980960224e-3F, r.high, 0.1394256484e-2F);
  tail = std::fma(tail, r.high, 0.8333456703e-2F);
  tail = std::fma(tail, r.high, 0.4166637361e-1F);
  FloatPair sum = add_any(multiply(r, tail), 0.166666659414234244790680580464F);
  sum = add_any(multiply(r, sum), 0.5F);
  sum = add_any(r, multiply(square(r), sum));
  sum = add_smaller(1.0F, sum);
  const int exponent = static_cast<int>(n);
  return {std::ldexp(sum.high, exponent), std::ldexp(sum.low, exponent)};
}

}  // namespace

float sleef_log_u10(float x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<float>::infinity();
  if (std::isinf(x)) return x;
  // x away from both ends of the range, so that its product below is normal.
  const int shift = x < 1 ? 64 : -64;
  const int exponent = std::ilogb(std::ldexp(x, shift) * (1.0F / 0.75F)) - shift;
  const float mantissa = std::ldexp(x, -exponent);
  const FloatPair quotient =
      divide(add_any(FloatPair{-1, 0}, mantissa), add_any(FloatPair{1, 0}, mantissa));
  const float square = quotient.high * quotient.high;
  float tail = std::fma(0.3027294874F, square, 0.3996108174F);
  tail = std::fma(tail, square, 0.6666694880F);
  const FloatPair ln_2{0.69314718246459960938F, -1.904654323148236017e-09F};
  FloatPair sum = multiply(ln_2, static_cast<float>(exponent));
  sum = add_smaller(sum, FloatPair{quotient.high * 2, quotient.low * 2});
  sum = add_smaller(sum, (square * quotient.high) * tail);
  return sum.high + sum.low;
}

float sleef_tanh_u10(float x) {
  constexpr float largest = 8.664339742F;
  if (std::isnan(x)) return x;
  const float magnitude = std::fabs(x);
  if (magnitude > largest) return std::copysign(1.0F, x);
  const FloatPair power = exp_pair(magnitude);
  const FloatPair inverse = reciprocal(power);
  const FloatPair quotient =
      divide(add_smaller(power, {-inverse.high, -inverse.low}), add_smaller(power, inverse));
  return std::copysign(quotient.high + quotient.low, x);
}

}  // namespace kvsim
