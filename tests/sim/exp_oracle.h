// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// The exponential function by MPFR, as the exact result from which tests/softfloat/oracle_round.h
/// derives every rounding and flag.

#include <mpfr.h>

#include "tests/softfloat/oracle.h"
#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {

/// exp(operand) cut toward zero to `precision` bits, at most 120.
inline Exact exact_exp(const Operand& operand, int precision) {
  Exact result;
  if (operand.kind == Kind::nan) {
    result.kind = Kind::nan;
    result.invalid = operand.signaling;
    return result;
  }
  if (operand.kind == Kind::infinite) {
    result.kind = operand.negative ? Kind::zero : Kind::infinite;
    return result;
  }
  mpfr_set_emin(mpfr_get_emin_min());
  mpfr_set_emax(mpfr_get_emax_max());
  mpfr_t x, y;
  mpfr_init2(x, 64);
  mpfr_init2(y, precision);
  mpfr_set_uj_2exp(x, operand.kind == Kind::zero ? 0 : operand.significand, operand.exponent,
                   MPFR_RNDN);
  if (operand.negative) mpfr_neg(x, x, MPFR_RNDN);
  // An argument beyond ±2^20 has its result beyond every format; MPFR itself would overflow.
  if (mpfr_cmp_si(x, 1 << 20) > 0) mpfr_set_si(x, 1 << 20, MPFR_RNDN);
  if (mpfr_cmp_si(x, -(1 << 20)) < 0) mpfr_set_si(x, -(1 << 20), MPFR_RNDN);
  result.kind = Kind::finite;
  result.sticky = mpfr_exp(y, x, MPFR_RNDZ) != 0;
  mpz_t integer;
  mpz_init(integer);
  result.exponent = static_cast<int>(mpfr_get_z_2exp(integer, y));
  mpz_t high;
  mpz_init(high);
  mpz_fdiv_q_2exp(high, integer, 64);
  mpz_fdiv_r_2exp(integer, integer, 64);
  result.significand = (Wide{mpz_get_ui(high)} << 64) + mpz_get_ui(integer);
  mpz_clears(integer, high, nullptr);
  mpfr_clears(x, y, static_cast<mpfr_ptr>(nullptr));
  return result;
}

}  // namespace kvsim::oracle
