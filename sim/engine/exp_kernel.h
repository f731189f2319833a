// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/simd_level.h"

/// The exp models in SIMD lanes, compiled once per instruction set.
namespace kvsim::engine {

/// What a kernel computes, element by element.
enum class ExpKind : std::uint8_t {
  exp,             ///< e^x correctly rounded
  exp2,            ///< 2^x correctly rounded
  torch_exp_u20,   ///< e^x
  torch_fexp_u20,  ///< e^x
  sleef_u10,       ///< e^x
  fa4_polynomial,  ///< 2^x
};

/// out[i] = function(in[i]), 0 ≤ i < count; `out` may be `in`.
using ExpKernel = void (*)(ExpKind kind, const float* in, float* out, std::size_t count);

/// The kernel of a level; that of the portable level where this build or this CPU lacks it.
[[nodiscard]] ExpKernel exp_kernel(SimdLevel level);

}  // namespace kvsim::engine
