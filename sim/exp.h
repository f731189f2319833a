// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/double_double.h"
#include "softfloat/exact.h"
#include "softfloat/format.h"
#include "softfloat/rounding.h"

namespace kvsim {

/// value · 2^exponent, for results beyond the range of double.
struct ScaledDoubleDouble {
  DoubleDouble value;  ///< between 0.99 and 2.02
  int exponent = 0;
};

/// The exponential function of x, −1024 ≤ x ≤ 1024, with relative error at most 2^−102: a table of
/// 2^(i/64), a three-part ln 2, and the Taylor polynomial of degree 12. The largest error that
/// exp_test.cc sees against MPFR is about 2^−104.
[[nodiscard]] ScaledDoubleDouble exp_scaled(DoubleDouble x);

/// The same for an x of at most 24 significant bits, in double arithmetic alone: relative error at
/// most 2^−58.
[[nodiscard]] ScaledDoubleDouble exp_quick(double x);

/// The exponential function of x as a double-double: relative error at most 2^−102 from −634 to
/// 709.78, where neither part of the result is subnormal. Below that the absolute error is at most
/// 2^−1074; the result is 0 below −746 and infinity above the range of double. NaN gives NaN.
[[nodiscard]] DoubleDouble exp_reference(DoubleDouble x);

/// 2^x with the error bounds of exp_reference, from −915 to 1023.99.
[[nodiscard]] DoubleDouble exp2_reference(DoubleDouble x);

/// The exponential function of a number of any format of precision ≤ 53, correctly rounded to the
/// same format in every rounding direction, with the flags of IEEE 754-2019: exp(±0) = 1 and
/// exp(−∞) = +0 exactly, every other finite argument raises inexact.
/// Only values of x decide which precision is used, never the host: double arithmetic with a proven
/// error interval first where precision ≤ 24, double-double second, integers of 384 bits last.
[[nodiscard]] softfloat::Rounded exp_correctly_rounded(const softfloat::Format& format,
                                                       softfloat::Bits x,
                                                       const softfloat::Mode& mode = {});

/// The last of these steps alone: the exponential of a finite x ≠ 0 with 2^−100 ≤ |x| < 1024, cut
/// to 126 bits with the sticky bit set, from an approximation of absolute error below 2^−350 of
/// the result. Some microseconds. That no argument comes closer than that to a rounding boundary is
/// known for binary64 in the five IEEE directions (Lefèvre, Muller, "Worst cases for correct
/// rounding of the elementary functions in double precision", ARITH 15, 2001: 113 bits are enough
/// for |x| ≥ 2^−30) and is a probabilistic argument (2^64 arguments against 2^−250) elsewhere.
[[nodiscard]] softfloat::Exact exp_wide(double x);

}  // namespace kvsim
