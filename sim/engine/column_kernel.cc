// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h. What is older than AVX2 (2013)
// is left out: few such CPUs run, and each instruction set costs a minute of compilation.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
// The portable target is plain C++ (HWY_SCALAR) under every compiler; g++ 12 cannot compile the
// other one, and clang needs minutes for it.
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE  // the portable target too, although SIMD targets supersede it
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/column_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "sim/engine/column_kernel-inl.h"

#if HWY_ONCE
#include "sim/engine/column_kernel.h"
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {

ColumnKernel column_kernel(SimdLevel level) {
  constexpr LevelFunctions<ColumnKernel> kernels KVSIM_AT_EACH_LEVEL(sum_columns);
  return function_at(level, kernels);
}

RoundKernel round_kernel(SimdLevel level) {
  constexpr LevelFunctions<RoundKernel> kernels KVSIM_AT_EACH_LEVEL(round_values);
  return function_at(level, kernels);
}

}  // namespace kvsim::engine
#endif  // HWY_ONCE
