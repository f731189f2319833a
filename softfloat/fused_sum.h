// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <limits>
#include <span>

#include "softfloat/exact.h"
#include "softfloat/format.h"
#include "softfloat/mutants.h"
#include "softfloat/round.h"
#include "softfloat/wide.h"

/// The sum inside a matrix unit: align to the largest exponent, truncate, add exactly, round once.
/// Source: MMA-Sim v2 (arXiv 2511.10909) algorithm 7, "T-FDPA"; checked against hardware vectors.
namespace kvsim::softfloat {

/// One addend: (−1)^negative × significand × 2^(exponent − fraction_bits). The exponent is the one
/// that takes part in the alignment: a subnormal operand keeps emin and a significand below 1, and
/// a product keeps the sum of its operands' exponents and a significand in [0, 4).
struct FusedTerm {
  Class kind = Class::zero;
  bool negative = false;
  int exponent = 0;
  std::uint64_t significand = 0;
  int fraction_bits = 0;
};

/// The addend `a`, read as a matrix unit reads it: subnormals are not normalised.
[[nodiscard]] constexpr FusedTerm fused_term(const Format& f, Bits a) {
  const NarrowExact value = unpack<std::uint64_t>(f, a);
  if (value.kind != Class::finite) return {value.kind, value.negative, 0, 0, 0};
  const int exponent = value.exponent < f.emin() ? f.emin() : value.exponent;
  const int shift = NarrowExact::top - f.trailing_bits() + (exponent - value.exponent);
  return {Class::finite, value.negative, exponent, value.significand >> shift, f.trailing_bits()};
}

/// The exact product a × b of codes of formats with at most 24 bits of precision each. Infinity
/// times zero is NaN.
[[nodiscard]] constexpr FusedTerm fused_product(const Format& a_format, Bits a,
                                                const Format& b_format, Bits b) {
  const FusedTerm x = fused_term(a_format, a);
  const FusedTerm y = fused_term(b_format, b);
  const bool negative = x.negative != y.negative;
  if (x.kind == Class::nan || y.kind == Class::nan) return {Class::nan, negative, 0, 0, 0};
  if (x.kind == Class::infinity || y.kind == Class::infinity) {
    const bool times_zero = x.kind == Class::zero || y.kind == Class::zero;
    return {times_zero ? Class::nan : Class::infinity, negative, 0, 0, 0};
  }
  if (x.kind == Class::zero || y.kind == Class::zero) return {Class::zero, negative, 0, 0, 0};
  return {Class::finite, negative, x.exponent + y.exponent, x.significand * y.significand,
          x.fraction_bits + y.fraction_bits};
}

/// The parameters of one fused sum.
struct FusedSum {
  static constexpr int no_zero_exponent = std::numeric_limits<int>::min() / 2;

  int fraction_bits = 25;  ///< F, 0…60: bits kept below the unit of the largest exponent
  /// A lower bound of the largest exponent: the exponent with which a zero addend takes part.
  int zero_exponent = no_zero_exponent;
  Format output{8, 24, 127};
  /// Rounding of the one conversion; the units that truncate overflow to infinity nevertheless.
  Mode mode{.rounding = Rounding::toward_zero, .overflow = Overflow::infinity};
};

/// Sum of at most 2^32 terms. Every term is truncated toward zero to a multiple of
/// 2^(largest exponent − F); the rest is exact until one rounding to `output`. A NaN term, or
/// infinities of both signs, give the canonical NaN with flag invalid for the latter. A sum that
/// cancels is +0; all terms −0 give −0. An empty sum is +0.
[[nodiscard]] constexpr Rounded fused_sum(std::span<const FusedTerm> terms, const FusedSum& sum) {
  bool nan = false;
  bool positive_infinity = false;
  bool negative_infinity = false;
  bool all_negative_zero = !terms.empty();
  bool any_finite = false;
  int largest = mutant_is_on(Mutant::aligned_to_one) ? 0 : sum.zero_exponent;
  for (const FusedTerm& term : terms) {
    nan |= term.kind == Class::nan;
    positive_infinity |= term.kind == Class::infinity && !term.negative;
    negative_infinity |= term.kind == Class::infinity && term.negative;
    all_negative_zero &= term.kind == Class::zero && term.negative;
    if (term.kind != Class::finite) continue;
    any_finite = true;
    if (term.exponent > largest) largest = term.exponent;
  }
  if (nan) return detail::nan_result(sum.output);
  if (positive_infinity && negative_infinity) {
    Rounded result = detail::nan_result(sum.output);
    result.flags.invalid = true;
    return result;
  }
  if (positive_infinity || negative_infinity) {
    return detail::infinite_result(sum.output, negative_infinity, sum.mode);
  }
  if (!any_finite) return round_pack(sum.output, Exact{Class::zero, all_negative_zero, 0, 0});

  const int unit = largest - sum.fraction_bits + (mutant_is_on(Mutant::fewer_bits_aligned) ? 1 : 0);
  int128 total = 0;
  for (const FusedTerm& term : terms) {
    if (term.kind != Class::finite) continue;
    const int shift = unit - (term.exponent - term.fraction_bits);
    uint128 magnitude = term.significand;
    if (shift >= 64) continue;  // truncated to nothing
    bool floored = mutant_is_on(Mutant::aligned_terms_floored) && term.negative && shift > 0 &&
                   (magnitude & ((uint128{1} << shift) - 1)) != 0;
    magnitude = shift >= 0 ? magnitude >> shift : magnitude << -shift;
    if (floored) ++magnitude;
    total += term.negative ? -static_cast<int128>(magnitude) : static_cast<int128>(magnitude);
    if (mutant_is_on(Mutant::bit_dropped_in_turn)) total -= total % 2;
  }
  const bool negative = total < 0;
  const uint128 magnitude = negative ? -static_cast<uint128>(total) : static_cast<uint128>(total);
  return round_pack(sum.output, make_exact(negative, magnitude, unit), sum.mode);
}

}  // namespace kvsim::softfloat
