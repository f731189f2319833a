// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>

#include "sim/attention/row_steps.h"
#include "sim/engine/simd_level.h"

/// Elementwise binary32 steps on rows of equal length, each one rounding per element.
namespace kvsim::attention {

/// sums[i] += values[i].
inline void add_into(std::span<float> sums, std::span<const float> values) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
}

/// values[i] *= factor.
inline void multiply_by(std::span<float> values, float factor) {
  for (float& x : values) x *= factor;
}

/// sums[i] = fma(values[i], factor, sums[i]).
inline void multiply_add(std::span<const float> values, float factor, std::span<float> sums,
                         SimdLevel level) {
  row_steps(level).add_product(values.data(), sums.size(), factor, sums.data());
}

}  // namespace kvsim::attention
