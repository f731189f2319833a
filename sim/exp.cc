// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/exp.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "sim/exp_constants.h"
#include "softfloat/host.h"
#include "softfloat/mutants.h"
#include "softfloat/round.h"
#include "softfloat/wide.h"

namespace kvsim {
namespace {

using softfloat::Class;
using softfloat::Exact;

// x = steps · ln 2 / 64 + a rest; steps as a double and split into a power of two and a table
// index.
struct Steps {
  double count;
  int exponent;
  std::size_t index;
};

Steps split_steps(double steps) {
  constexpr double shifter = 0x1.8p52;  // adding it rounds to an integer, ties to even
  const double count = (steps + shifter) - shifter;
  const int integer = static_cast<int>(count);
  return {count, integer >> 6, static_cast<std::size_t>(integer & 63)};
}

// a + b for |b| well below |a|: one renormalisation, no cancellation to guard against.
DoubleDouble add_smaller(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = fast_two_sum(a.high, b.high);
  return fast_two_sum(high.high, high.low + (a.low + b.low));
}

// exp(r) − 1 for |r| ≤ ln 2 / 128 = 2^−7.5. The terms from r^6/6! on are below 2^−54 of exp(r), so
// double arithmetic is enough for them; the first one left out, r^13/13!, is below 2^−130.
DoubleDouble exp_minus_one(DoubleDouble r) {
  using exp_constants::inverse_factorials;
  using exp_constants::small_inverse_factorials;
  double tail = small_inverse_factorials.back();
  for (std::size_t i = small_inverse_factorials.size() - 1; i-- > 0;) {
    tail = small_inverse_factorials[i] + r.high * tail;
  }
  DoubleDouble sum = add_smaller(inverse_factorials[2], {r.high * tail});
  sum = add_smaller(inverse_factorials[1], r * sum);
  sum = add_smaller(inverse_factorials[0], r * sum);
  sum = add_smaller({0.5}, r * sum);
  return add_smaller(r, r * r * sum);
}

ScaledDoubleDouble finish(const Steps& steps, DoubleDouble r) {
  const DoubleDouble power = exp_constants::powers[steps.index];
  return {add_smaller(power, power * exp_minus_one(r)), steps.exponent};
}

DoubleDouble unscale(ScaledDoubleDouble x) {
  const DoubleDouble result = scale_by_power_of_two(x.value, x.exponent);
  return std::isinf(result.high) ? DoubleDouble(result.high) : result;
}

// The exact value of x.value · 2^x.exponent · (1 ± 2^−error_bits) cut to 115 bits, if no multiple
// of the unit in place `grid` lies in that interval: then every rounding that looks at no more than
// `grid` bits and a sticky bit is decided. The value itself is irrational, so sticky is always set.
std::optional<Exact> decide(ScaledDoubleDouble x, int error_bits, int grid) {
  using softfloat::uint128;
  constexpr int fraction_bits = 114;
  const auto high = static_cast<std::int64_t>(x.value.high * 0x1p60);  // exact
  const auto low = static_cast<std::int64_t>(x.value.low * 0x1p114);   // cut, below one unit
  const uint128 middle = (static_cast<uint128>(high) << (fraction_bits - 60)) +
                         static_cast<uint128>(static_cast<softfloat::int128>(low));
  // x.value < 4, hence the two bits; one unit more than needed covers the cut of `low`.
  const uint128 error = (uint128{1} << (fraction_bits + 2 - error_bits)) + 1;
  const uint128 upper = middle + error;
  const int length = softfloat::digits<uint128> - softfloat::leading_zeros(upper);
  const int below_grid = length - grid;
  if (((middle - error) >> below_grid) != (upper >> below_grid)) return std::nullopt;
  return softfloat::make_exact<uint128>(false, middle, x.exponent - fraction_bits, true);
}

Exact with_sticky(int exponent, softfloat::uint128 significand) {
  return {Class::finite, false, exponent, significand | 1};
}

}  // namespace

ScaledDoubleDouble exp_quick(double x) {
  using exp_constants::step_high;
  constexpr double step_rest = exp_constants::step_middle + exp_constants::step_low;
  // Four roundings of numbers below 2^−7.5 (two in r and its polynomial, the product with the table
  // value, the sum with its low part) cost 2^−61 each; r^8/8! is below 2^−75.
  const Steps steps = split_steps(x * exp_constants::inverse_step);
  // The first difference is exact: both terms are multiples of 2^−42 and it is below 2^−7.
  const double r = (x - steps.count * step_high) - steps.count * step_rest;
  const double square = r * r;
  const double polynomial =
      r + square * ((0.5 + r * (1.0 / 6)) + square * ((1.0 / 24 + r * (1.0 / 120)) +
                                                      square * (1.0 / 720 + r * (1.0 / 5040))));
  const DoubleDouble power = exp_constants::powers[steps.index];
  return {fast_two_sum(power.high, power.low + power.high * polynomial), steps.exponent};
}

ScaledDoubleDouble exp_scaled(DoubleDouble x) {
  const Steps steps = split_steps(x.high * exp_constants::inverse_step);
  const double n = -steps.count;
  // The first two products are exact. |x.low| can exceed the third one or be far below it.
  DoubleDouble r = two_sum(x.high, n * exp_constants::step_high);
  r = r + n * exp_constants::step_middle;
  r = r + x.low;
  r = r + n * exp_constants::step_low;
  return finish(steps, r);
}

DoubleDouble exp_reference(DoubleDouble x) {
  if (std::isnan(x.high)) return {x.high};
  if (x.high > 710) return {std::numeric_limits<double>::infinity()};
  if (x.high < -746) return {0.0};
  return unscale(exp_scaled(x));
}

DoubleDouble exp2_reference(DoubleDouble x) {
  if (std::isnan(x.high)) return {x.high};
  if (x.high > 1024) return {std::numeric_limits<double>::infinity()};
  if (x.high < -1076) return {0.0};
  const Steps steps = split_steps(x.high * 64);
  const DoubleDouble rest = fast_two_sum(x.high - steps.count / 64, x.low);  // exact difference
  return unscale(finish(steps, rest * exp_constants::ln2));
}

softfloat::Rounded exp_correctly_rounded(const softfloat::Format& format, softfloat::Bits x,
                                         const softfloat::Mode& mode) {
  using softfloat::uint128;
  constexpr uint128 one = uint128{1} << Exact::top;
  const auto argument = softfloat::unpack<std::uint64_t>(format, x, mode.subnormals);
  switch (argument.kind) {
    case Class::nan: {
      softfloat::Rounded result = softfloat::round_pack(format, Exact{Class::nan}, mode);
      result.flags.invalid = softfloat::is_signaling_nan(format, x);
      return result;
    }
    case Class::zero:
      return softfloat::round_pack(format, Exact{Class::finite, false, 0, one}, mode);
    case Class::infinity: {
      const Class kind = argument.negative ? Class::zero : Class::infinity;
      return softfloat::round_pack(format, Exact{kind}, mode);
    }
    case Class::finite:
      break;
  }
  // Bits of the result that can decide its rounding, the sticky bit apart.
  const bool stochastic = mode.rounding == softfloat::Rounding::stochastic;
  const int grid = format.precision + (stochastic ? 34 : 2);
  if (argument.exponent >= 10) {  // |x| ≥ 1024: far beyond the range of every format
    return softfloat::round_pack(
        format, with_sticky(argument.negative ? -1'000'000 : 1'000'000, one), mode);
  }
  if (argument.exponent <= -grid - 2) {  // 1 < exp(x) < 1 + 2^−grid, or 1 − 2^−grid < exp(x) < 1
    return softfloat::round_pack(
        format, argument.negative ? with_sticky(-1, one + (one - 1)) : with_sticky(0, one), mode);
  }
  const double value = softfloat::to_double(format, x);
  constexpr int quick_error_bits = 58;
  constexpr int accurate_error_bits = 102;
  std::optional<Exact> exact;
  if (format.precision <= 24 && !stochastic)
    exact = decide(exp_quick(value), quick_error_bits, grid);
  if (!exact) exact = decide(exp_scaled(value), accurate_error_bits, grid);
  if (!exact) exact = exp_wide(value);
  if (mutant_is_on(Mutant::exp_truncated)) {
    return softfloat::round_pack(format, *exact, {.rounding = softfloat::Rounding::toward_zero});
  }
  return softfloat::round_pack(format, *exact, mode);
}

}  // namespace kvsim
