// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/elementary.h"

#include <cmath>
#include <limits>

#include "sim/double_double.h"
#include "sim/elementary_double.h"
#include "sim/elementary_wide.h"
#include "sim/exp.h"

namespace kvsim {
namespace {

using elementary::Function;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

/// The float nearest to a value of which `approximation` is known within the relative error: if
/// both ends of that interval round to one float, so does the value. Otherwise more bits decide.
float decide(Function function, double approximation, double error, float x, float y = 0) {
  const auto low = static_cast<float>(approximation * (1 - error));
  const auto high = static_cast<float>(approximation * (1 + error));
  return low == high ? low : elementary::round_wide(function, x, y);
}

/// The same for exp and exp2, of which a double-double is known within 2^−100: unless its high part
/// is the middle between two floats, that part alone decides.
float decide_exponential(Function function, double approximation, double error, float x,
                         DoubleDouble (*reference)(DoubleDouble)) {
  const auto low = static_cast<float>(approximation * (1 - error));
  const auto high = static_cast<float>(approximation * (1 + error));
  if (low == high) return low;
  const DoubleDouble value = reference(x);
  const auto below = static_cast<float>(value.high * (1 - 0x1p-52));
  const auto above = static_cast<float>(value.high * (1 + 0x1p-52));
  if (below == above) return below;
  if (std::fabs(value.low) < value.high * 0x1p-100) return elementary::round_wide(function, x);
  return value.low < 0 ? below : above;
}

/// The result of log and log2 where x is not a finite number above zero.
float log_outside(float x) {
  if (x == 0) return -infinity;
  return x > 0 ? infinity : quiet_nan;
}

bool has_logarithm(float x) { return x > 0 && x < infinity; }

}  // namespace

float exp_f32(float x) {
  if (std::isnan(x)) return quiet_nan;
  if (x > 89) return infinity;
  if (x < -104) return 0;
  return decide_exponential(Function::exp, elementary::exp_double(x), elementary::exp_error, x,
                            exp_reference);
}

float exp2_f32(float x) {
  if (std::isnan(x)) return quiet_nan;
  if (x >= 128) return infinity;
  if (x <= -150) return 0;
  return decide_exponential(Function::exp2, elementary::exp2_double(x), elementary::exp2_error, x,
                            exp2_reference);
}

float log_f32(float x) {
  if (!has_logarithm(x)) return log_outside(x);
  return decide(Function::log, elementary::log_double(x), elementary::log_error, x);
}

float log2_f32(float x) {
  if (!has_logarithm(x)) return log_outside(x);
  return decide(Function::log2, elementary::log2_double(x), elementary::log_error, x);
}

float tanh_f32(float x) {
  if (std::isnan(x)) return quiet_nan;
  return decide(Function::tanh, elementary::tanh_double(x), elementary::tanh_error, x);
}

float erf_f32(float x) {
  if (std::isnan(x)) return quiet_nan;
  if (std::fabs(x) >= 4) return std::copysign(1.0F, x);
  return decide(Function::erf, elementary::erf_double(x), elementary::erf_error, x);
}

float sin_f32(float x) {
  if (!std::isfinite(x)) return quiet_nan;
  if (std::fabs(x) > elementary::largest_reduced_angle)
    return elementary::round_wide(Function::sin, x);
  if (x == 0) return x;
  return decide(Function::sin, elementary::sin_double(x), elementary::sin_error, x);
}

float cos_f32(float x) {
  if (!std::isfinite(x)) return quiet_nan;
  if (std::fabs(x) > elementary::largest_reduced_angle)
    return elementary::round_wide(Function::cos, x);
  return decide(Function::cos, elementary::cos_double(x), elementary::sin_error, x);
}

float rsqrt_f32(float x) {
  if (x == 0) return std::copysign(infinity, x);
  if (!has_logarithm(x)) return x > 0 ? 0.0F : quiet_nan;
  // Two roundings, of 2^−53 each.
  return decide(Function::reciprocal_square_root, 1 / std::sqrt(static_cast<double>(x)), 0x1p-51,
                x);
}

float pow_f32(float base, float exponent) {
  if (!has_logarithm(base) || !std::isfinite(exponent)) return quiet_nan;
  const double power = static_cast<double>(exponent) * elementary::log2_double(base);
  if (power >= 128.5) return infinity;
  if (power <= -150.5) return 0;
  // |power| · 2^−48 before, and exp2 itself.
  return decide(Function::pow, elementary::exp2_double(power), 0x1p-40, base, exponent);
}

}  // namespace kvsim
