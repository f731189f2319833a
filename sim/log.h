// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/double_double.h"

namespace kvsim {

/// The natural logarithm of x, 2^−900 ≤ x ≤ 2^900, as a double-double, with an error of at most
/// 2^−100 · max(1, |result|); log 1 is 0 exactly. One step from the binary64 approximation y of
/// sim/elementary_double.h: log x = y + log(1 + d) with d = x · e^(−y) − 1, |d| < 2^−38, by the
/// exponential of sim/exp.h. The cut series of log(1 + d) leaves out less than 2^−150.
[[nodiscard]] DoubleDouble log_reference(DoubleDouble x);

}  // namespace kvsim
