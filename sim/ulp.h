// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/double_double.h"
#include "softfloat/format.h"

namespace kvsim {

/// The exponent of the unit in the last place of a finite value in `format`: the distance of the
/// format's numbers around it is 2^result. With e = ⌊log2 |value|⌋ (of the whole double-double),
/// cut to the format's exponents, it is e − precision + 1. Zero has the unit of the smallest
/// number.
[[nodiscard]] int ulp_exponent(const softfloat::Format& format, DoubleDouble value);

}  // namespace kvsim
