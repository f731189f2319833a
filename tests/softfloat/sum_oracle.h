// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Sums of many terms by their definitions, in integers of GMP: the sum inside a matrix unit, and
/// the exact dot product.

#include <gmp.h>

#include <algorithm>
#include <span>
#include <vector>

#include "softfloat/fused_sum.h"
#include "tests/softfloat/oracle.h"
#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {

/// A term by its definition: significand × 2^unit, aligned by `exponent`.
struct Term {
  Kind kind = Kind::zero;
  bool negative = false;
  int exponent = 0;
  long unit = 0;
  std::uint64_t significand = 0;
};

inline Term term(const Format& f, Bits bits) {
  const Operand o = decode(f, bits);
  Term t{o.kind, o.negative, 0, o.exponent, o.significand};
  if (o.kind == Kind::finite) {
    const int log2 = o.exponent + bit_length(o.significand) - 1;
    t.exponent = std::max(log2, limits(f).emin);
  }
  return t;
}

inline Term product(const Term& a, const Term& b) {
  Term t;
  t.negative = a.negative != b.negative;
  const auto either = [&](Kind kind) { return a.kind == kind || b.kind == kind; };
  if (either(Kind::nan) || (either(Kind::infinite) && either(Kind::zero))) {
    t.kind = Kind::nan;
  } else if (either(Kind::infinite)) {
    t.kind = Kind::infinite;
  } else if (!either(Kind::zero)) {
    t = {Kind::finite, t.negative, a.exponent + b.exponent, a.unit + b.unit,
         a.significand * b.significand};
  }
  return t;
}

/// fused_sum() by its definition.
inline Rounded defined_sum(const std::vector<Term>& terms, const softfloat::FusedSum& sum) {
  Exact result;
  bool all_negative_zero = !terms.empty(), any = false, plus = false, minus = false, nan = false;
  int largest = 0;
  for (const Term& t : terms) {
    nan = nan || t.kind == Kind::nan;
    if (t.kind == Kind::infinite) (t.negative ? minus : plus) = true;
    all_negative_zero = all_negative_zero && t.kind == Kind::zero && t.negative;
    if (t.kind == Kind::zero && sum.zero_exponent == softfloat::FusedSum::no_zero_exponent)
      continue;
    const int exponent = t.kind == Kind::zero ? sum.zero_exponent : t.exponent;
    largest = any ? std::max(largest, exponent) : exponent;
    any = true;
  }
  if (nan || (plus && minus)) {
    result.kind = Kind::nan;
    result.invalid = !nan;
  } else if (plus || minus) {
    result.kind = Kind::infinite;
    result.negative = minus;
  } else {
    const long unit = static_cast<long>(largest) - sum.fraction_bits;
    mpz_t total, one;
    mpz_inits(total, one, static_cast<mpz_ptr>(nullptr));
    for (const Term& t : terms) {
      if (t.kind == Kind::zero) continue;
      mpz_set_ui(one, t.significand);
      if (t.unit >= unit) {
        mpz_mul_2exp(one, one, static_cast<mp_bitcnt_t>(t.unit - unit));
      } else {
        mpz_tdiv_q_2exp(one, one, static_cast<mp_bitcnt_t>(unit - t.unit));
      }
      if (t.negative) mpz_neg(one, one);
      mpz_add(total, total, one);
    }
    result = exact_value(total, unit);
    if (result.kind == Kind::zero) {
      result.cancelled = false;
      result.negative = all_negative_zero;
    }
    mpz_clears(total, one, static_cast<mpz_ptr>(nullptr));
  }
  return round(result, sum.output, sum.mode);
}

/// The exact sum of products, or of numbers where b is empty. Specials and zeros by the rules of
/// IEEE 754: opposite infinities and infinity × 0 are invalid, zeros of one sign keep it.
inline Exact defined_dot(const Format& f, std::span<const Bits> a, std::span<const Bits> b) {
  constexpr long unit = -2200;  // below every product of two numbers of binary64
  mpz_t total, one;
  mpz_inits(total, one, static_cast<mpz_ptr>(nullptr));
  bool nan = false, invalid = false, plus = false, minus = false;
  bool zeros = true, positive_zero = a.empty(), negative_zero = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Operand x = decode(f, a[i]);
    const Operand y =
        b.empty() ? Operand{Kind::finite, false, false, false, 1, 0} : decode(f, b[i]);
    const bool negative = x.negative != y.negative;
    if (x.kind == Kind::nan || y.kind == Kind::nan) {
      nan = true;
    } else if (x.kind == Kind::infinite || y.kind == Kind::infinite) {
      invalid = invalid || x.kind == Kind::zero || y.kind == Kind::zero;
      (negative ? minus : plus) = true;
    } else if (x.kind == Kind::zero || y.kind == Kind::zero) {
      (negative ? negative_zero : positive_zero) = true;
    } else {
      zeros = false;
      mpz_set_ui(one, x.significand);
      mpz_mul_ui(one, one, y.significand);
      mpz_mul_2exp(one, one, static_cast<mp_bitcnt_t>(x.exponent + y.exponent - unit));
      if (negative) mpz_neg(one, one);
      mpz_add(total, total, one);
    }
  }
  Exact result;
  if (nan || invalid || (plus && minus)) {
    result.kind = Kind::nan;
    result.invalid = invalid || (plus && minus);
  } else if (plus || minus) {
    result.kind = Kind::infinite;
    result.negative = minus;
  } else {
    result = exact_value(total, unit);
    if (zeros && positive_zero != negative_zero) {
      result.cancelled = false;
      result.negative = negative_zero;
    }
  }
  mpz_clears(total, one, static_cast<mpz_ptr>(nullptr));
  return result;
}

}  // namespace kvsim::oracle
