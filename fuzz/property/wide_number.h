// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <mpfr.h>

#include <string>

#include "softfloat/format.h"
#include "softfloat/rounding.h"

namespace kvsim::fuzz {

/// A number of MPFR that frees itself.
class WideNumber {
 public:
  /// Zero, of so many bits.
  explicit WideNumber(mpfr_prec_t bits) {
    mpfr_init2(value_, bits);
    mpfr_set_zero(value_, 1);
  }
  WideNumber(mpfr_prec_t bits, double value) : WideNumber(bits) {
    mpfr_set_d(value_, value, MPFR_RNDN);
  }
  WideNumber(const WideNumber& other) : WideNumber(mpfr_get_prec(other.value_)) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
  }
  WideNumber& operator=(const WideNumber& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~WideNumber() { mpfr_clear(value_); }

  [[nodiscard]] mpfr_ptr get() { return value_; }
  [[nodiscard]] mpfr_srcptr get() const { return value_; }
  [[nodiscard]] double to_double(mpfr_rnd_t rounding = MPFR_RNDN) const {
    return mpfr_get_d(value_, rounding);
  }

 private:
  mpfr_t value_;
};

/// A function of MPFR, such as mpfr_exp, in binary64: correctly rounded.
[[nodiscard]] inline double by_mpfr(int (*function)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t), double x) {
  WideNumber result(53, x);
  function(result.get(), result.get(), MPFR_RNDN);
  return result.to_double();
}

/// base^exponent in binary64, correctly rounded.
[[nodiscard]] inline double power_by_mpfr(double base, double exponent) {
  WideNumber result(53, base);
  mpfr_pow(result.get(), result.get(), WideNumber(53, exponent).get(), MPFR_RNDN);
  return result.to_double();
}

/// The number of an IEEE-style format that an operation gives whose `result`, of the format's
/// precision and any exponent, was rounded with `ternary`: overflow and subnormal numbers are as in
/// the format, and nothing is rounded twice.
[[nodiscard]] inline double in_range_of(const softfloat::Format& format, WideNumber& result,
                                        int ternary, mpfr_rnd_t rounding) {
  const mpfr_exp_t lowest = mpfr_get_emin();
  const mpfr_exp_t highest = mpfr_get_emax();
  mpfr_set_emin(format.emin() - format.precision + 2);
  mpfr_set_emax(format.emax() + 1);
  const int checked = mpfr_check_range(result.get(), ternary, rounding);
  mpfr_subnormalize(result.get(), checked, rounding);
  mpfr_set_emin(lowest);
  mpfr_set_emax(highest);
  return result.to_double();
}

}  // namespace kvsim::fuzz
