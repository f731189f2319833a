// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>

#include "sim/engine/simd_level.h"

/// The steps of a row between its two products in SIMD lanes, compiled once per instruction set: a
/// fused multiply-add on its own costs more than the products where the C library is called for it.
namespace kvsim::attention {

/// The steps of one instruction set; every one gives the same bits, but for the sign of a maximum
/// of zeros.
struct RowSteps {
  /// The largest of `before` and values[i] + offset, with binary32 additions; NaN is passed over.
  float (*maximum)(float before, const float* values, std::size_t count, float offset);
  /// values[i] = fma(values[i], factor, addend).
  void (*multiply_add)(float* values, std::size_t count, float factor, float addend);
  /// sums[i] = fma(values[i], factor, sums[i]).
  void (*add_product)(const float* values, std::size_t count, float factor, float* sums);
};

/// The steps of a level; those of the portable level where this build or this CPU lacks it.
[[nodiscard]] const RowSteps& row_steps(SimdLevel level);

}  // namespace kvsim::attention
