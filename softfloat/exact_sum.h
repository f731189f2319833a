// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "softfloat/exact.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/mutants.h"
#include "softfloat/round.h"
#include "softfloat/wide.h"

namespace kvsim::softfloat {

/// A fixed-point number wide enough for any sum of at most 2^63 numbers of any format up to
/// binary64, or of products of two of them. Nothing is rounded before round(), so the result does
/// not depend on the order of the terms by construction (Kulisch's long accumulator).
///
/// The number is kept as 32-bit digits in 64-bit limbs; carries stay in the limbs until they are
/// needed. Limb i has weight 2^(32·i − 2304). Products of binary64 numbers reach from 2^−2148 to
/// below 2^2048; the significands of subnormal ones are added with zeros below, hence the room at
/// the low end.
class ExactAccumulator {
 public:
  /// Adds the value of a code.
  constexpr void add(const Format& f, Bits a) { add_value(unpack<std::uint64_t>(f, a), 0); }

  /// Adds the exact product of two codes. Infinity times zero is an invalid operation.
  constexpr void add_product(const Format& a_format, Bits a, const Format& b_format, Bits b) {
    const auto x = unpack<std::uint64_t>(a_format, a);
    const auto y = unpack<std::uint64_t>(b_format, b);
    const bool negative = x.negative != y.negative;
    if (x.kind == Class::nan || y.kind == Class::nan) {
      nan_ = true;
    } else if (x.kind == Class::infinity || y.kind == Class::infinity) {
      if (x.kind == Class::zero || y.kind == Class::zero) {
        invalid_ = true;
      } else {
        note_infinity(negative);
      }
    } else if (x.kind == Class::zero || y.kind == Class::zero) {
      note_zero(negative);
    } else {
      // Both significands carry at most 53 bits below their leading one.
      constexpr int spare = NarrowExact::top - 52;
      const uint128 product =
          static_cast<uint128>(x.significand >> spare) * (y.significand >> spare);
      add_magnitude(negative, product, x.exponent + y.exponent - 104);
    }
  }

  /// Adds a host number.
  constexpr void add(double value) { add(binary64, from_double(value)); }

  /// Adds the exact product of two host numbers.
  constexpr void add_product(double a, double b) {
    add_product(binary64, from_double(a), binary64, from_double(b));
  }

  /// The sum, rounded once. An empty sum is +0; a sum of zeros has their common sign; an exact zero
  /// from other terms is +0, or −0 where rounding toward negative. Infinities of both signs, or
  /// infinity times zero, give the canonical NaN and raise invalid; a NaN term gives NaN.
  [[nodiscard]] constexpr Rounded round(const Format& to, const Mode& mode = {}) const {
    if (nan_ || invalid_ || (positive_infinity_ && negative_infinity_)) {
      Rounded result = detail::nan_result(to);
      result.flags.invalid |= invalid_ || (positive_infinity_ && negative_infinity_);
      return result;
    }
    if (positive_infinity_ || negative_infinity_) {
      return round_pack(to, Exact{Class::infinity, negative_infinity_, 0, 0}, mode);
    }
    return round_pack(to, value(mode.rounding), mode);
  }

  /// The sum as a value before rounding: exact but for the sticky bit. Finite terms only.
  [[nodiscard]] constexpr Exact value(Rounding rounding = Rounding::ties_to_even) const {
    if (highest_ < 0) return zero_value(rounding);
    std::array<std::int64_t, limbs> digit{};
    const int end = carry_end();
    for (int i = lowest_; i <= end; ++i) digit[index(i)] = limb_[index(i)];
    bool negative = false;
    if (propagate(digit, lowest_, end) < 0) {
      negative = true;
      for (int i = lowest_; i <= end; ++i) digit[index(i)] = -digit[index(i)];
      propagate(digit, lowest_, end);
    }
    int top = end;
    while (top >= lowest_ && digit[index(top)] == 0) --top;
    if (top < lowest_) return zero_value(rounding);
    // The four leading digits hold 97 to 128 bits; the digit below fills the significand up.
    uint128 significand = 0;
    const int lowest = top >= 3 ? top - 3 : 0;
    for (int i = top; i >= lowest; --i) {
      significand = (significand << 32) | static_cast<uint128>(digit[index(i)]);
    }
    int lsb_exponent = 32 * lowest - bias;
    int next = lowest - 1;
    bool sticky = false;
    if (next >= 0) {
      const int room = leading_zeros(significand);
      const auto below = static_cast<std::uint64_t>(digit[index(next)]);
      significand = (significand << room) | uint128{below >> (32 - room)};
      sticky = (below & ((std::uint64_t{1} << (32 - room)) - 1)) != 0;
      lsb_exponent -= room;
      --next;
    }
    for (; next >= lowest_ && !sticky; --next) sticky = digit[index(next)] != 0;
    return make_exact(negative, significand, lsb_exponent, sticky);
  }

 private:
  static constexpr int limbs = 142;  // 2^−2304 … 2^2240
  static constexpr int bias = 2304;  // limb 0 has weight 2^−bias
  static constexpr int max_pending = 1 << 29;

  constexpr void add_value(const NarrowExact& x, int scale) {
    switch (x.kind) {
      case Class::nan:
        nan_ = true;
        break;
      case Class::infinity:
        note_infinity(x.negative);
        break;
      case Class::zero:
        note_zero(x.negative);
        break;
      case Class::finite:
        add_magnitude(x.negative, x.significand, x.exponent - NarrowExact::top + scale);
        break;
    }
  }

  constexpr void note_infinity(bool negative) {
    (negative ? negative_infinity_ : positive_infinity_) = true;
  }
  constexpr void note_zero(bool negative) { (negative ? negative_zero_ : positive_zero_) = true; }

  constexpr void add_magnitude(bool negative, uint128 magnitude, int lsb_exponent) {
    if (++pending_ == max_pending) settle();
    const int position = lsb_exponent + bias;
    int i = position >> 5;
    if (i < lowest_) lowest_ = i;
    const int shift = position & 31;
    const auto low = static_cast<std::uint64_t>(magnitude) << shift;
    uint128 rest = magnitude >> (64 - shift);
    if (mutant_is_on(Mutant::high_product_bits_lost)) rest = 0;
    const std::int64_t sign = negative ? -1 : 1;
    limb_[index(i++)] += sign * static_cast<std::int64_t>(low & 0xffffffffu);
    limb_[index(i)] += sign * static_cast<std::int64_t>(low >> 32);
    for (uint128 part = rest; part != 0; part >>= 32) {
      limb_[index(++i)] +=
          sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(part) & 0xffffffffu);
    }
    if (i > highest_) highest_ = i;
  }

  static constexpr std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// The limb that takes the last carries: a limb of max_pending additions carries into two more.
  [[nodiscard]] constexpr int carry_end() const {
    return highest_ + 2 < limbs ? highest_ + 2 : limbs - 1;
  }

  /// Moves the carries up, so that the limbs have room for max_pending more additions.
  constexpr void settle() {
    const int end = carry_end();
    const std::int64_t carry = propagate(limb_, lowest_, end);
    limb_[index(end)] += carry * (std::int64_t{1} << 32);
    highest_ = end;
    pending_ = 0;
  }

  /// Brings the limbs from `begin` to `end` into [0, 2^32) and returns what is carried out at the
  /// top: −1 for a negative number, which the limbs then hold in two's complement.
  static constexpr std::int64_t propagate(std::array<std::int64_t, limbs>& digit, int begin,
                                          int end) {
    std::int64_t carry = 0;
    for (int i = begin; i <= end; ++i) {
      const std::int64_t sum = digit[index(i)] + carry;
      digit[index(i)] = sum & 0xffffffff;
      carry = sum >> 32;
    }
    return carry;
  }

  /// The zero that stands for a sum without a nonzero rest.
  [[nodiscard]] constexpr Exact zero_value(Rounding rounding) const {
    const bool mixed = highest_ >= 0 || (positive_zero_ && negative_zero_);
    const bool negative = mixed ? rounding == Rounding::toward_negative : negative_zero_;
    return {Class::zero, negative, 0, 0};
  }

  std::array<std::int64_t, limbs> limb_{};
  int lowest_ = limbs;  // the limbs that any term has touched
  int highest_ = -1;
  int pending_ = 0;  // additions since the carries were moved up
  bool nan_ = false;
  bool invalid_ = false;
  bool positive_infinity_ = false;
  bool negative_infinity_ = false;
  bool positive_zero_ = false;
  bool negative_zero_ = false;
};

/// Σ a[i] of codes of one format, rounded once to `to`.
[[nodiscard]] constexpr Rounded exact_sum(const Format& f, std::span<const Bits> a,
                                          const Format& to, const Mode& mode = {}) {
  ExactAccumulator sum;
  for (const Bits x : a) sum.add(f, x);
  return sum.round(to, mode);
}

/// Σ a[i] × b[i] of codes of one format, rounded once to `to`; a and b have the same length.
[[nodiscard]] constexpr Rounded exact_dot(const Format& f, std::span<const Bits> a,
                                          std::span<const Bits> b, const Format& to,
                                          const Mode& mode = {}) {
  ExactAccumulator sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add_product(f, a[i], f, b[i]);
  return sum.round(to, mode);
}

}  // namespace kvsim::softfloat
