// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

namespace kvsim {

/// Natural logarithm of a normal positive double, in double arithmetic without a library call:
/// the series 2·artanh((m − 1)/(m + 1)) for m in [√½, √2). Error below 2 ulp (measured against
/// MPFR).
[[nodiscard]] double log_positive(double x);

/// The argument at which the standard normal distribution function is p, 0 < p < 1. Relative error
/// about 1e−15 (measured against Boost.Math). Additions, multiplications, divisions and one square
/// root of doubles in a fixed order, hence the same bits on every host.
/// Source: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
/// Statistics 37(3), 1988, routine PPND16.
[[nodiscard]] double normal_quantile(double p);

}  // namespace kvsim
