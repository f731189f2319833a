// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// a × b + c of formats of at most 11 bits of precision, exactly, in 128-bit integers: a faster
/// oracle than MPFR where there are very many cases. half_fma_test.cc checks it against MPFR.

#include <algorithm>
#include <vector>

#include "tests/softfloat/oracle.h"

namespace kvsim::oracle {

__extension__ using SignedWide = __int128;

/// The exact result of x × y + z; where the terms lie too far apart for 128 bits, cut toward zero
/// with at least 60 bits kept.
inline Exact integer_fma(const Operand& x, const Operand& y, const Operand& z) {
  Exact r;
  const bool negative = x.negative != y.negative;
  const bool product_infinite = x.kind == Kind::infinite || y.kind == Kind::infinite;
  const bool product_zero = x.kind == Kind::zero || y.kind == Kind::zero;
  const bool nan = x.kind == Kind::nan || y.kind == Kind::nan;
  const bool undefined = !nan && product_infinite && product_zero;
  r.invalid = x.signaling || y.signaling || z.signaling || undefined;
  if (nan || undefined || z.kind == Kind::nan) {
    r.kind = Kind::nan;
    return r;
  }
  if (product_infinite || z.kind == Kind::infinite) {
    const bool both = product_infinite && z.kind == Kind::infinite;
    r.kind = both && negative != z.negative ? Kind::nan : Kind::infinite;
    r.invalid = r.kind == Kind::nan;
    r.negative = r.kind == Kind::infinite && (product_infinite ? negative : z.negative);
    return r;
  }
  if (product_zero && z.kind == Kind::zero) {
    r.cancelled = negative != z.negative;
    r.negative = !r.cancelled && negative;
    return r;
  }
  SignedWide product = product_zero ? 0 : static_cast<SignedWide>(x.significand * y.significand);
  SignedWide addend = z.kind == Kind::zero ? 0 : static_cast<SignedWide>(z.significand);
  if (negative) product = -product;
  if (z.negative) addend = -addend;
  int product_exponent = x.exponent + y.exponent;
  int addend_exponent = z.exponent;
  if (product == 0) product_exponent = addend_exponent;
  if (addend == 0) addend_exponent = product_exponent;
  constexpr int kReach = 100;  // 22 + 100 bits fit
  SignedWide sum = 0;
  if (product_exponent - addend_exponent > kReach || addend_exponent - product_exponent > kReach) {
    const bool product_leads = product_exponent > addend_exponent;
    const SignedWide large = product_leads ? product : addend;
    const SignedWide small = product_leads ? addend : product;
    sum = large * (SignedWide{1} << 60);
    if ((large < 0) != (small < 0)) sum += large < 0 ? 1 : -1;
    r.sticky = true;
    r.exponent = (product_leads ? product_exponent : addend_exponent) - 60;
  } else {
    r.exponent = std::min(product_exponent, addend_exponent);
    sum = product * (SignedWide{1} << (product_exponent - r.exponent)) +
          addend * (SignedWide{1} << (addend_exponent - r.exponent));
  }
  r.kind = sum == 0 ? Kind::zero : Kind::finite;
  r.cancelled = sum == 0;
  r.negative = sum < 0;
  r.significand = static_cast<Wide>(sum < 0 ? -sum : sum);
  return r;
}

/// Every code of a format, decoded.
inline std::vector<Operand> decode_all(const Format& format) {
  std::vector<Operand> table;
  const Bits count =
      Bits{1} << (format.exponent_bits + format.precision - (format.has_sign ? 0 : 1));
  for (Bits a = 0; a < count; ++a) table.push_back(decode(format, a));
  return table;
}

}  // namespace kvsim::oracle
