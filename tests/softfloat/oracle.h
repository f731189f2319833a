// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// The oracle for softfloat: one operation computed once by MPFR, toward zero, with 34 bits more
/// than the format has and an exponent range that never ends; whether MPFR cut something off is the
/// sticky bit. From that, oracle_round.h derives every rounding, policy and flag. It shares no code
/// with softfloat: only the types that name a format, a mode and a result.
///
/// What it holds softfloat to, beyond IEEE 754-2019:
///  - an invalid operation gives the canonical NaN; a signaling NaN operand (IEEE formats with the
///    quiet bit clear) raises invalid; so does fma(0, infinity, quiet NaN). In a format without NaN
///    such a result, or the conversion of a NaN, is the largest positive value, and raises invalid;
///  - overflow is judged on the result rounded with unbounded exponent. Overflow::automatic gives
///    infinity or the largest finite number by direction (round to odd: the largest finite number;
///    stochastic: infinity); NaN stands for infinity where there is none, and the largest finite
///    number where there is no NaN either;
///  - an infinite result (from an infinite operand or a division by zero) in a format without
///    infinity, or under Overflow::saturate or Overflow::nan, is replaced in the same way, whatever
///    the direction, and raises overflow and inexact;
///  - tiny after rounding: the result rounded to p bits with unbounded exponent lies below 2^emin;
///    tiny before rounding: the exact result does. Underflow is tiny and inexact;
///  - Subnormals::flush_results turns tiny results into zero of their sign with underflow and
///    inexact; Subnormals::flush_inputs reads subnormal operands as zero of their sign, silently;
///  - stochastic rounding goes away from zero exactly when the top 32 discarded bits (those below
///    are ignored) plus Mode::random reach 2^32;
///  - formats without −0 give +0 for it; an exact zero sum is +0, or −0 toward negative;
///  - e8m0 has neither sign nor zero: a negative nonzero result is NaN and invalid; a result below
///    2^-127, zero included, is 2^-127 with underflow and inexact.

#include <mpfr.h>

#include <array>
#include <cstdint>

#include "softfloat/format.h"
#include "softfloat/rounding.h"

namespace kvsim::oracle {

using softfloat::Bits;
using softfloat::Flags;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Overflow;
using softfloat::Rounded;
using softfloat::Rounding;
using softfloat::Specials;
using softfloat::Subnormals;
using softfloat::Tininess;

__extension__ using Wide = unsigned __int128;

/// What a code or a result is.
enum class Kind : std::uint8_t { zero, finite, infinite, nan };

/// A result before rounding: (−1)^negative × significand × 2^exponent, cut toward zero.
struct Exact {
  Kind kind = Kind::zero;
  bool negative = false;
  bool cancelled = false;  ///< a zero whose sign the rounding direction chooses
  bool sticky = false;     ///< the exact magnitude is larger, by less than one unit
  bool invalid = false;
  bool division_by_zero = false;
  int exponent = 0;
  Wide significand = 0;

  friend bool operator==(const Exact&, const Exact&) = default;
};

/// A decoded operand: (−1)^negative × significand × 2^exponent.
struct Operand {
  Kind kind = Kind::zero;
  bool negative = false;
  bool signaling = false;  ///< NaN that raises invalid
  bool subnormal = false;
  std::uint64_t significand = 0;
  int exponent = 0;
};

/// The operations that the oracle computes.
enum class Op : std::uint8_t { add, sub, mul, div, fma, sqrt, convert, round_to_integral };

/// Operands that the operation takes: 1, 2 or 3.
constexpr int operand_count(Op op) {
  if (op == Op::fma) return 3;
  return op <= Op::div ? 2 : 1;
}

/// The operand that `bits` encodes; with `flush` a subnormal reads as zero of its sign.
Operand decode(const Format& format, Bits bits, bool flush = false);

/// The exact value of an operand, as the result of copying it.
Exact exact_value(const Operand& operand);

/// MPFR, with the registers for one operation at a time. Not for use by two threads at once.
class Oracle {
 public:
  Oracle();
  ~Oracle();
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  /// The result of `op` on operands of format `from`, cut to `to.precision` + 34 bits.
  /// Not for Op::round_to_integral, whose exact result is the operand.
  Exact compute(Op op, const Format& to, const Format& from, Bits a, Bits b = 0, Bits c = 0,
                bool flush = false);

 private:
  static void load(mpfr_ptr target, const Operand& operand);
  Exact unload(bool inexact) const;

  mpfr_t a_, b_, c_, result_;
};

/// `sum` × 2^exponent, cut to its top 120 bits.
Exact exact_value(mpz_srcptr sum, long exponent);

/// The result of `op` as softfloat must give it; the slow way round, for single cases.
Rounded expected(Oracle& oracle, Op op, const Format& to, const Format& from, Bits a, Bits b,
                 Bits c, const Mode& mode);

/// True when the mode reads subnormal operands as zero.
constexpr bool flushes_inputs(const Mode& mode) {
  return mode.subnormals == Subnormals::flush_inputs || mode.subnormals == Subnormals::flush_both;
}

}  // namespace kvsim::oracle
