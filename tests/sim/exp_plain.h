// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// The exp models once more, one float at a time, with the C library's fma and MPFR: what the lanes
/// must give.

#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/sim/elementary_oracle.h"

namespace kvsim::oracle {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

inline float plain_torch_exp_u20(float x) {
  if (x < -0x1.5d58ap+6F) return 0;
  if (!(x < 0x1.62e43p+6F)) x = 0x1.62e43p+6F;
  const float n = std::floor(std::fma(x, 1.44269504F, 0.5F));
  const float r = std::fma(-n, 0.693147181F, x);
  float sum = 0.00828929059F;
  for (const float c : {0.0418978221F, 0.166676521F, 0.499991506F, 0.999999701F, 1.0F})
    sum = std::fma(r, sum, c);
  // The code of 2^(n − 1) is zero for n = −126.
  const float power = n == -126 ? 0.0F : std::ldexp(1.0F, static_cast<int>(n) - 1);
  return sum * power * 2;
}

inline float plain_torch_fexp_u20(float x) {
  if (std::isnan(x)) return -0.0F;
  if (x < -0x1.5d58ap+6F) return 0;
  if (x > 0x1.62e43p+6F) return infinity;
  const float y = x * 1.44269504F;
  const float fraction = y - std::floor(y);
  float p = -0.079204240219773236F;
  for (const float c : {-0.22433836478672356F, 0.30354260500649682F, 0.00010703434948458272F})
    p = std::fma(fraction, p, c);
  const float code = std::fma(8388608.0F, y - p, 127 * 8388608.0F);
  return std::bit_cast<float>(static_cast<std::int32_t>(code));
}

inline float plain_sleef_u10(float x) {
  if (std::isnan(x)) return quiet_nan;
  if (x < -104) return 0;
  if (x > 100) return infinity;
  const float n = std::nearbyint(x * 1.44269504F);
  const float s = std::fma(n, -1.428606765330187045e-06F, std::fma(n, -0.693145751953125F, x));
  float u = 0.000198527617612853646278381F;
  for (const float c : {0.00139304355252534151077271F, 0.00833336077630519866943359F,
                        0.0416664853692054748535156F, 0.166666671633720397949219F, 0.5F})
    u = std::fma(u, s, c);
  return std::ldexp(1 + std::fma(s * s, u, s),
                    static_cast<int>(n));  // rounds once, as the two steps
}

/// SLEEF's log of a positive normal float: what its pairs of floats leave out is written as exact
/// differences in binary64.
inline float plain_sleef_log(float x) {
  if (!(x > 0)) return x == 0 ? -infinity : quiet_nan;
  if (std::isinf(x)) return x;
  int e = 0;
  float m = std::frexp(x, &e);  // [0.5, 1)
  // The library's own comparison: x ÷ 0.75, rounded.
  if (m * (1.0F / 0.75F) < 1) {
    m *= 2;
    e -= 1;
  }
  const auto exact = [](float a) { return static_cast<double>(a); };
  const float below = m - 1;  // exact
  const float above = m + 1;
  const auto above_low = static_cast<float>(exact(m) + 1 - exact(above));
  const float inverse = 1 / above;
  const float q = below * inverse;
  const auto product_low = static_cast<float>(exact(inverse) * exact(below) - exact(q));
  const auto first = static_cast<float>(1 - exact(above) * exact(inverse));
  const float inverse_low = std::fma(-above_low, inverse, first);
  const float q_low = std::fma(q, inverse_low, product_low);
  const float q2 = q * q;
  float t = 0.3027294874F;
  for (const float c : {0.3996108174F, 0.6666694880F}) t = std::fma(t, q2, c);
  const auto n = static_cast<float>(e);
  const float ln_2 = 0.693147182F;
  const float high = n * ln_2;
  const float low = std::fma(-1.904654323148236017e-09F, n,
                             static_cast<float>(exact(n) * exact(ln_2) - exact(high)));
  const float sum = high + 2 * q;
  const float sum_low = (((high - sum) + 2 * q) + low) + 2 * q_low;
  const float last = (q2 * q) * t;
  const float all = sum + last;
  return all + (((sum - all) + last) + sum_low);
}

/// glibc's expf: the powers of two by MPFR.
inline float plain_libm_expf(float x) {
  if (std::isnan(x)) return quiet_nan;
  if (x > 88.7228394F) return infinity;
  if (x < -103.972084F) return 0;
  const double scaled = 0x1.71547652b82fep+5;  // 32 ÷ ln 2
  const double k = std::nearbyint(scaled * static_cast<double>(x));
  const double r = std::fma(scaled, static_cast<double>(x), -k);
  mpfr_t power;
  mpfr_init2(power, 53);
  mpfr_set_d(power, k / 32, MPFR_RNDN);
  mpfr_exp2(power, power, MPFR_RNDN);
  const double scale = mpfr_get_d(power, MPFR_RNDN);
  mpfr_clear(power);
  const double first = std::fma(0x1.62e42ff0c52d6p-6, r, 1.0);
  const double last = std::fma(0x1.c6af84b912394p-20, r, 0x1.ebfce50fac4f3p-13);
  return static_cast<float>(std::fma(last, r * r, first) * scale);
}

inline float plain_fa4(float x) {
  if (!(x > -127)) x = -127;  // NaN too
  if (x > 0x1p20F) x = 0x1p20F;
  const float fraction = x - std::floor(x);
  float p = 0.077119089663028717041015625F;
  for (const float c : {0.227564394474029541015625F, 0.695146143436431884765625F, 1.0F})
    p = std::fma(p, fraction, c);
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(std::floor(x)));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (exponent << 23));
}

inline float rounded_exp(float x) {
  Binary32Range mpfr;
  return std::bit_cast<float>(mpfr.round({"exp", nullptr, mpfr_exp}, x));
}
inline float rounded_exp2(float x) {
  Binary32Range mpfr;
  return std::bit_cast<float>(mpfr.round({"exp2", nullptr, mpfr_exp2}, x));
}

}  // namespace kvsim::oracle
