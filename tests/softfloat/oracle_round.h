// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// From a result cut toward zero and its sticky bit to the encoding and the flags, in every
/// rounding and under every policy. The rules are those that oracle.h lists.

#include <algorithm>
#include <bit>

#include "tests/softfloat/oracle.h"

namespace kvsim::oracle {

constexpr int bit_length(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? 128 - std::countl_zero(high)
                   : 64 - std::countl_zero(static_cast<std::uint64_t>(x));
}

/// What the oracle needs of a format, written down here from its five numbers alone.
struct Limits {
  int emin, emax;
  Wide max_significand;  ///< of the largest finite number, p bits
  Bits sign, largest, infinity, nan;
  bool has_infinity, has_nan, has_negative_zero, power_only;
};

constexpr Limits limits(const Format& f) {
  Limits l{};
  const int top_field = (1 << f.exponent_bits) - 1;
  const bool ieee = f.specials == Specials::ieee;
  l.power_only = f.specials == Specials::exponent_only;
  l.emin = (l.power_only ? 0 : 1) - f.bias;
  l.emax = top_field - f.bias - (ieee || l.power_only ? 1 : 0);
  l.max_significand = (Wide{1} << f.precision) - (f.specials == Specials::nan_only ? 2 : 1);
  const Bits all_ones = (Bits{1} << (f.exponent_bits + f.precision - 1)) - 1;
  l.sign = f.has_sign ? all_ones + 1 : 0;
  l.has_infinity = ieee;
  l.infinity = all_ones - ((Bits{1} << (f.precision - 1)) - 1);
  l.has_nan = f.specials != Specials::none;
  l.has_negative_zero = f.has_sign && f.specials != Specials::nan_is_negative_zero;
  switch (f.specials) {
    case Specials::ieee:
      l.nan = l.infinity + (Bits{1} << f.precision) / 4;
      l.largest = l.infinity - 1;
      break;
    case Specials::nan_only:
    case Specials::exponent_only:
      l.nan = all_ones;
      l.largest = all_ones - 1;
      break;
    case Specials::nan_is_negative_zero:
      l.nan = l.sign;
      l.largest = all_ones;
      break;
    case Specials::none:
      l.largest = all_ones;
      break;
  }
  return l;
}

/// A magnitude rounded to a multiple of 2^quantum: `kept` of them.
struct Cut {
  Wide kept;
  bool inexact;
  std::uint64_t top32;  ///< the top 32 discarded bits
};

constexpr Cut cut(const Exact& x, int quantum, Rounding rounding, std::uint32_t random) {
  const int drop = quantum - x.exponent;
  if (drop <= 0 && !x.sticky) return {x.significand << -drop, false, 0};
  Wide kept = 0;
  bool half = false, below = x.sticky;  // the first discarded bit; any bit after it
  std::uint64_t top32 = 0;
  if (drop <= 128) {
    kept = drop < 128 ? x.significand >> drop : 0;
    half = ((x.significand >> (drop - 1)) & 1) != 0;
    const Wide rest = (Wide{1} << (drop - 1)) - 1;
    below = below || (x.significand & rest) != 0;
  } else {
    below = true;
  }
  if (drop < 32) {
    const Wide discarded = x.significand & ((Wide{1} << drop) - 1);
    top32 = static_cast<std::uint64_t>(discarded) << (32 - drop);
  } else if (drop - 32 < 128) {
    top32 = static_cast<std::uint64_t>(x.significand >> (drop - 32)) & 0xffffffffU;
  }
  const bool inexact = half || below;
  const bool odd = (kept & 1) != 0;
  bool away = false;
  switch (rounding) {
    case Rounding::ties_to_even:
      away = half && (below || odd);
      break;
    case Rounding::ties_to_away:
      away = half;
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::toward_positive:
      away = inexact && !x.negative;
      break;
    case Rounding::toward_negative:
      away = inexact && x.negative;
      break;
    case Rounding::to_odd:
      away = inexact && !odd;
      break;
    case Rounding::stochastic:
      away = top32 + random >= (std::uint64_t{1} << 32);
      break;
  }
  return {kept + (away ? 1 : 0), inexact, top32};
}

/// True when an overflow in this direction ends at infinity (IEEE 754-2019 clause 7.4).
constexpr bool overflows_to_infinity(Rounding rounding, bool negative) {
  switch (rounding) {
    case Rounding::toward_zero:
    case Rounding::to_odd:
      return false;
    case Rounding::toward_positive:
      return !negative;
    case Rounding::toward_negative:
      return negative;
    default:
      return true;
  }
}

/// The rounded result of an operation whose result is `x`.
constexpr Rounded round(const Exact& x, const Format& f, const Mode& mode) {
  const Limits l = limits(f);
  Rounded r;
  r.flags.invalid = x.invalid;
  r.flags.division_by_zero = x.division_by_zero;
  const Bits sign = x.negative ? l.sign : 0;
  const bool unsigned_negative = l.power_only && x.negative && x.kind != Kind::zero;
  if (x.kind == Kind::nan || unsigned_negative) {
    r.flags.invalid = x.invalid || !l.has_nan || unsigned_negative;
    r.bits = l.has_nan ? l.nan : l.largest;
    return r;
  }
  const auto overflowed = [&](bool to_infinity) {
    r.flags.overflow = r.flags.inexact = true;
    const bool always = mode.overflow == Overflow::infinity && l.has_infinity;
    if (mode.overflow == Overflow::saturate || (mode.overflow == Overflow::nan && !l.has_nan) ||
        (mode.overflow != Overflow::nan && !always && !to_infinity)) {
      r.bits = sign + l.largest;
    } else if (mode.overflow != Overflow::nan && l.has_infinity) {
      r.bits = sign + l.infinity;
    } else {
      r.bits = l.has_nan ? l.nan : sign + l.largest;
    }
    return r;
  };
  const auto zero = [&](bool negative) { return negative && l.has_negative_zero ? l.sign : 0; };
  const auto underflowed = [&](Bits bits) {
    r.flags.underflow = r.flags.inexact = true;
    r.bits = bits;
    return r;
  };

  if (x.kind == Kind::infinite) {
    if (!l.has_infinity || mode.overflow == Overflow::saturate || mode.overflow == Overflow::nan) {
      return overflowed(true);
    }
    r.bits = sign + l.infinity;
    return r;
  }
  if (x.kind == Kind::zero) {
    if (l.power_only) return underflowed(0);
    r.bits = zero(x.cancelled ? mode.rounding == Rounding::toward_negative : x.negative);
    return r;
  }

  // With unbounded exponent: decides overflow and, after rounding, tininess.
  const int top = x.exponent + bit_length(x.significand) - 1;
  const int p = f.precision;
  const Cut unbounded = cut(x, top - p + 1, mode.rounding, mode.random);
  const bool carried = unbounded.kept >> p != 0;
  const int rounded_top = top + (carried ? 1 : 0);
  const Wide significand = carried ? unbounded.kept >> 1 : unbounded.kept;
  if (rounded_top > l.emax || (rounded_top == l.emax && significand > l.max_significand)) {
    return overflowed(overflows_to_infinity(mode.rounding, x.negative));
  }
  const bool tiny = (mode.tininess == Tininess::before_rounding ? top : rounded_top) < l.emin;
  const bool flush =
      mode.subnormals == Subnormals::flush_results || mode.subnormals == Subnormals::flush_both;
  if (l.power_only && (rounded_top < l.emin || (tiny && flush))) return underflowed(0);
  if (tiny && flush) return underflowed(zero(x.negative));

  const int quantum = std::max(top, l.emin) - p + 1;
  const Cut bounded = cut(x, quantum, mode.rounding, mode.random);
  r.flags.inexact = bounded.inexact;
  r.flags.underflow = tiny && bounded.inexact;
  if (bounded.kept == 0) {
    r.bits = zero(x.negative);
    return r;
  }
  // 2^(p−1) of the smallest quantum is the first normal number, whose field is 1 (e8m0: 0); a
  // carry out of the significand moves on to the next field by itself.
  const auto steps = static_cast<Bits>(quantum - (l.emin - p + 1));
  r.bits = sign + static_cast<Bits>(bounded.kept) + (steps << (p - 1)) - (l.power_only ? 1 : 0);
  return r;
}

/// The operand rounded to an integer; inexact when it was none, and no underflow.
constexpr Rounded round_to_integral(const Exact& x, const Format& f, const Mode& mode) {
  if (x.kind != Kind::finite || x.exponent >= 0) return round(x, f, mode);
  const Cut integer = cut(x, 0, mode.rounding, mode.random);
  Exact value = x;
  value.kind = integer.kept == 0 ? Kind::zero : Kind::finite;
  value.significand = integer.kept;
  value.exponent = 0;
  Rounded r = round(value, f, mode);
  r.flags.inexact = r.flags.inexact || integer.inexact;
  return r;
}

}  // namespace kvsim::oracle
