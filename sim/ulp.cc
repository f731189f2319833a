// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/ulp.h"

#include <algorithm>
#include <cmath>

namespace kvsim {
namespace {

// ⌊log2 |value|⌋ of a nonzero double-double.
int exponent_of(DoubleDouble value) {
  int exponent = 0;
  const double fraction = std::frexp(value.high, &exponent);  // |fraction| in [½, 1)
  // At a power of two a low part of the other sign puts the value into the binade below.
  const bool below = std::fabs(fraction) == 0.5 && value.low != 0 &&
                     std::signbit(value.low) != std::signbit(value.high);
  return exponent - (below ? 2 : 1);
}

}  // namespace

int ulp_exponent(const softfloat::Format& format, DoubleDouble value) {
  int exponent = format.emin();
  if (value.high != 0) exponent = std::clamp(exponent_of(value), format.emin(), format.emax());
  return exponent - format.precision + 1;
}

}  // namespace kvsim
