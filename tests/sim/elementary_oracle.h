// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Functions of binary32 by MPFR, correctly rounded, subnormal results included.

#include <mpfr.h>

#include <bit>
#include <cstdint>
#include <string_view>

namespace kvsim::oracle {

/// One function: its name, and MPFR's, which gives the ternary value of its rounding.
struct ElementaryFunction {
  std::string_view name;
  float (*function)(float);
  int (*mpfr)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
};

/// The exponent range of binary32 for as long as it lives: results round as IEEE 754 asks.
class Binary32Range {
 public:
  Binary32Range() : least_(mpfr_get_emin()), most_(mpfr_get_emax()) {
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_init2(x_, 24);
    mpfr_init2(y_, 24);
  }
  ~Binary32Range() {
    mpfr_clears(x_, y_, static_cast<mpfr_ptr>(nullptr));
    mpfr_set_emin(least_);
    mpfr_set_emax(most_);
  }
  Binary32Range(const Binary32Range&) = delete;
  Binary32Range& operator=(const Binary32Range&) = delete;

  /// The code of function(x); any NaN is 0x7fc00000.
  std::uint32_t round(const ElementaryFunction& row, float x) {
    mpfr_set_flt(x_, x, MPFR_RNDN);
    const int inexact = row.mpfr(y_, x_, MPFR_RNDN);
    mpfr_subnormalize(y_, inexact, MPFR_RNDN);
    return mpfr_nan_p(y_) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(mpfr_get_flt(y_, MPFR_RNDN));
  }

 private:
  mpfr_exp_t least_, most_;
  mpfr_t x_, y_;
};

}  // namespace kvsim::oracle
