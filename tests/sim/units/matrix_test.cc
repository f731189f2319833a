// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Products of matrices on units in lanes (sim/engine/matrix.h) against unit_dot(), at every SIMD
/// level of this CPU.

#include <gtest/gtest.h>

#include <string>

#include "tests/sim/units/matrix_cases.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// A shape of at most `largest` rows, and 10 times as many terms and 7 times as many columns.
MatrixShape random_shape(std::uint64_t seed, std::int64_t largest) {
  const auto from = [&](std::uint64_t i, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(oracle::mix(seed * 16 + i) %
                                           static_cast<std::uint64_t>(high - low + 1));
  };
  return {.rows = from(0, 1, largest),
          .terms = from(1, 1, largest * 10),
          .columns = from(2, 1, largest * 7),
          .gap = from(3, 0, 5),
          .b_transposed = from(4, 0, 1) == 1,
          .has_addend = from(5, 0, 3) != 0};
}

TEST(UnitMatrix, EqualsUnitDotForEveryUnit) {
  std::uint64_t seed = 1;
  for (const MatrixUnit& unit : matrix_units()) {
    if (!engine_takes(unit)) continue;
    for (std::uint64_t kind = 0; kind <= oracle::mixes; ++kind, ++seed) {
      const MatrixShape shape = random_shape(seed, 5);
      const MatrixCase each = matrix_case(unit, shape, mixed_numbers(seed, kind));
      ASSERT_TRUE(levels_agree(unit, each, "kind " + std::to_string(kind)));
    }
  }
}

}  // namespace
}  // namespace kvsim
