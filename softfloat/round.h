// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "softfloat/exact.h"
#include "softfloat/format.h"
#include "softfloat/mutants.h"
#include "softfloat/rounding.h"
#include "softfloat/wide.h"

/// The only place in this project where a value is rounded. Native instructions and vector lanes
/// are fast paths that a test proves equal to it.
namespace kvsim::softfloat {

/// An integer part that remains of a significand, and whether anything else was there.
template <Significand S>
struct Cut {
  S kept = 0;
  bool inexact = false;
};

/// Rounds significand ÷ 2^shift to an integer, shift ≥ 1. `negative` matters to the directed
/// roundings, `random` to stochastic rounding.
template <Significand S>
[[nodiscard]] constexpr Cut<S> cut(S significand, int shift, bool negative, Rounding rounding,
                                   std::uint32_t random) {
  constexpr int width = digits<S>;
  const bool all_discarded = shift >= width;
  S kept = all_discarded ? S{0} : static_cast<S>(significand >> shift);
  const S discarded =
      all_discarded ? significand : static_cast<S>(significand & ((S{1} << shift) - 1));
  if (discarded == 0) return {kept, false};
  bool away = false;
  switch (rounding) {
    case Rounding::ties_to_even:
    case Rounding::ties_to_away: {
      if (shift > width) break;  // below half a unit
      const S half = static_cast<S>(S{1} << (shift - 1));
      away = discarded > half ||
             (discarded == half && (rounding == Rounding::ties_to_away || (kept & 1) != 0 ||
                                    mutant_is_on(Mutant::ties_away)));
      break;
    }
    case Rounding::toward_zero:
      break;
    case Rounding::toward_positive:
      away = !negative;
      break;
    case Rounding::toward_negative:
      away = negative;
      break;
    case Rounding::to_odd:
      kept |= 1;
      break;
    case Rounding::stochastic: {
      std::uint64_t fraction = 0;  // the top 32 discarded bits
      if (shift <= 32) {
        fraction = static_cast<std::uint64_t>(discarded) << (32 - shift);
      } else if (shift - 32 < width) {
        fraction = static_cast<std::uint64_t>(discarded >> (shift - 32));
      }
      away = ((fraction + random) >> 32) != 0;
      break;
    }
  }
  if (away) ++kept;
  return {kept, true};
}

namespace detail {

/// Canonical NaN; the largest positive number with flag invalid where the format has none.
[[nodiscard]] constexpr Rounded nan_result(const Format& f) {
  if (f.has_nan()) return {f.canonical_nan(), {}};
  return {f.max_finite(), {.invalid = true}};
}

[[nodiscard]] constexpr Bits with_sign(const Format& f, bool negative, Bits magnitude) {
  return negative ? magnitude | f.sign_bit() : magnitude;
}

/// True when a rounding of this direction stops at the largest finite number instead of
/// overflowing.
[[nodiscard]] constexpr bool stops_at_largest(Rounding rounding, bool negative) {
  switch (rounding) {
    case Rounding::toward_zero:
    case Rounding::to_odd:
      return true;
    case Rounding::toward_positive:
      return negative;
    case Rounding::toward_negative:
      return !negative;
    case Rounding::ties_to_even:
    case Rounding::ties_to_away:
    case Rounding::stochastic:
      break;
  }
  return false;
}

/// The code that stands for a result beyond the largest finite number.
[[nodiscard]] constexpr Bits beyond_largest(const Format& f, bool negative, Overflow overflow) {
  const bool wants_infinity = overflow == Overflow::automatic || overflow == Overflow::infinity;
  if (wants_infinity && f.has_infinity()) return with_sign(f, negative, f.infinity());
  if (overflow != Overflow::saturate && f.has_nan()) return f.canonical_nan();
  return with_sign(f, negative, f.max_finite());
}

/// A finite value whose rounded magnitude exceeds the largest finite number.
[[nodiscard]] constexpr Rounded overflow_result(const Format& f, bool negative, const Mode& mode) {
  const Flags flags{.overflow = true, .inexact = true};
  const bool directed = mode.overflow == Overflow::automatic ||
                        (mode.overflow == Overflow::infinity && !f.has_infinity());
  if (directed && stops_at_largest(mode.rounding, negative)) {
    return {with_sign(f, negative, f.max_finite()), flags};
  }
  return {beyond_largest(f, negative, mode.overflow), flags};
}

/// An infinite result: exact where the format and the policy allow an infinity, otherwise replaced
/// by what the policy says, with overflow and inexact raised.
[[nodiscard]] constexpr Rounded infinite_result(const Format& f, bool negative, const Mode& mode) {
  const Bits bits = beyond_largest(f, negative, mode.overflow);
  if (f.has_infinity() && (bits & f.magnitude_mask()) == f.infinity()) return {bits, {}};
  return {bits, {.overflow = true, .inexact = true}};
}

/// Zero of a sign. e8m0 has no zero: its smallest number stands for it, with underflow and inexact.
[[nodiscard]] constexpr Rounded zero_result(const Format& f, bool negative) {
  if (!f.has_zero()) return {0, {.underflow = true, .inexact = true}};
  return {negative && f.has_negative_zero() ? f.sign_bit() : Bits{0}, {}};
}

[[nodiscard]] constexpr bool flushes_results(const Mode& mode) {
  return mode.subnormals == Subnormals::flush_results || mode.subnormals == Subnormals::flush_both;
}

}  // namespace detail

/// Rounds an exact value into a format: the last step of every operation. NaN becomes the canonical
/// NaN. Raises overflow, underflow and inexact as IEEE 754-2019 clause 7 says; invalid only where a
/// NaN, or a negative number in an unsigned format, has no place in `f`.
template <Significand S>
[[nodiscard]] constexpr Rounded round_pack(const Format& f, const BasicExact<S>& value,
                                           const Mode& mode = {}) {
  using Value = BasicExact<S>;
  switch (value.kind) {
    case Class::nan:
      return detail::nan_result(f);
    case Class::zero:
      return detail::zero_result(f, value.negative);
    case Class::infinity:
    case Class::finite:
      break;
  }
  if (value.negative && !f.has_sign) {
    Rounded result = detail::nan_result(f);
    result.flags.invalid = true;
    return result;
  }
  if (value.kind == Class::infinity) return detail::infinite_result(f, value.negative, mode);
  if (value.exponent > f.emax()) return detail::overflow_result(f, value.negative, mode);

  // Significand bits below the last one of a normal result, and of this result.
  const int normal_shift = Value::top - f.trailing_bits();
  const int below = f.emin() - value.exponent;  // > 0: below the normal range
  const int shift = normal_shift + (below > 0 ? below : 0);
  const Cut<S> rounded = cut(value.significand, shift, value.negative, mode.rounding, mode.random);

  bool tiny = below > 0;
  if (below == 1 && mode.tininess == Tininess::after_rounding) {
    // Just below the normal range: tiny only if it stays there with an unbounded exponent.
    const Cut<S> unbounded =
        cut(value.significand, normal_shift, value.negative, mode.rounding, mode.random);
    tiny = unbounded.kept < (S{1} << f.precision);
  }

  if (!f.has_zero() && below > 0) {  // e8m0: nothing lies below its smallest number
    return {0, {.underflow = tiny, .inexact = true}};
  }
  if (tiny && (detail::flushes_results(mode) || mutant_is_on(Mutant::subnormals_flushed))) {
    Rounded result = detail::zero_result(f, value.negative);
    result.flags = {.underflow = true, .inexact = true};
    return result;
  }
  // The kept integer carries the hidden bit, so a carry out of the significand raises the exponent
  // field by itself, and a subnormal that rounds up becomes the smallest normal number.
  const Bits kept = static_cast<Bits>(rounded.kept);
  const Bits magnitude = below > 0
                             ? kept
                             : (static_cast<Bits>(value.exponent + f.bias) << f.trailing_bits()) +
                                   kept - (Bits{1} << f.trailing_bits());
  const Bits largest = f.max_finite() - (mutant_is_on(Mutant::largest_overflows) ? 1 : 0);
  if (magnitude > largest) return detail::overflow_result(f, value.negative, mode);
  const Flags flags{.underflow = tiny && rounded.inexact, .inexact = rounded.inexact};
  if (magnitude == 0) return {detail::zero_result(f, value.negative).bits, flags};
  return {detail::with_sign(f, value.negative, magnitude), flags};
}

}  // namespace kvsim::softfloat
