// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>

#include "softfloat/format.h"

namespace kvsim {

/// What a test may allow between two correct kernels: |a − b| ≤ absolute + relative · |b|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

/// What a tolerance is made from.
struct ToleranceInput {
  softfloat::Format format;     ///< storage format of the compared numbers
  double root_mean_square = 0;  ///< of the compared numbers
  double difference = 0;        ///< root mean square of a − b as measured
  double largest = 0;           ///< the largest |a − b| that was measured
  std::int64_t elements = 1;    ///< numbers that one test compares
};

/// The tolerance: relative is one unit in the last place at its widest, 2^(1 − p), which two
/// results that round the same value in two ways need; absolute is what the largest of `elements`
/// independent normal differences of the measured size stays below with 95 % probability, and at
/// least half a step of the format at the numbers' root mean square and the largest difference that
/// was measured. Both rounded up to two digits.
[[nodiscard]] Tolerance make_tolerance(const ToleranceInput& input);

/// Rounds a positive number up to two significant decimal digits.
[[nodiscard]] double two_digits_up(double value);

}  // namespace kvsim
