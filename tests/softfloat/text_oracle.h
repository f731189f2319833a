// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// The value of a number in text by MPFR, cut toward zero to 120 bits with an exponent range that
/// never ends; the ternary value is the sticky bit. oracle_round.h makes every rounding of it.

#include <mpfr.h>

#include <string>

#include "tests/softfloat/oracle.h"

namespace kvsim::oracle {

/// The exact value of a decimal, or of a hex-float that begins with 0x or -0x.
inline Exact value_of_text(const std::string& text) {
  constexpr int precision = 120;
  mpfr_t number;
  mpfr_init2(number, precision);
  char* end = nullptr;
  const int ternary = mpfr_strtofr(number, text.c_str(), &end, 0, MPFR_RNDZ);
  Exact value;
  value.negative = mpfr_signbit(number) != 0;
  value.kind = mpfr_zero_p(number) != 0 ? Kind::zero : Kind::finite;
  if (*end != '\0' || end == text.c_str()) value.kind = Kind::nan;
  if (value.kind == Kind::finite) {
    mpz_t significand;
    mpz_init(significand);
    value.exponent = static_cast<int>(mpfr_get_z_2exp(significand, number));
    mpz_abs(significand, significand);
    // 120 bits in two limbs.
    value.significand = static_cast<Wide>(mpz_getlimbn(significand, 1)) << 64 |
                        static_cast<Wide>(mpz_getlimbn(significand, 0));
    value.sticky = ternary != 0;
    mpz_clear(significand);
  }
  mpfr_clear(number);
  return value;
}

}  // namespace kvsim::oracle
