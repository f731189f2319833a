// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h. SSSE3 is left out: SSE4 came a
// year later.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3
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
#include <hwy/targets.h>

#include "sim/engine/column_kernel.h"

namespace kvsim::engine {
namespace {

struct Kernels {
  ColumnKernel columns = nullptr;
  RoundKernel round = nullptr;
};

bool cpu_has(std::int64_t target) {
  // Asking costs a CPUID each time, which a virtual machine makes slower than a small sum.
  static const std::int64_t supported = hwy::SupportedTargets();
  return (supported & target) != 0;
}

/// Highway's own dispatch keeps the chosen level in a global; here the caller passes it.
Kernels kernels(SimdLevel level) {
  switch (level) {
    case SimdLevel::scalar:
      return {N_SCALAR::sum_columns, N_SCALAR::round_values};
    case SimdLevel::sse4:
#if HWY_TARGETS & HWY_SSE4
      if (cpu_has(HWY_SSE4)) return {N_SSE4::sum_columns, N_SSE4::round_values};
#endif
      break;
    case SimdLevel::avx2:
#if HWY_TARGETS & HWY_AVX2
      if (cpu_has(HWY_AVX2)) return {N_AVX2::sum_columns, N_AVX2::round_values};
#endif
      break;
    case SimdLevel::avx512:
#if HWY_TARGETS & HWY_AVX3
      if (cpu_has(HWY_AVX3)) return {N_AVX3::sum_columns, N_AVX3::round_values};
#endif
      break;
  }
  return {};
}

}  // namespace

ColumnKernel column_kernel(SimdLevel level) { return kernels(level).columns; }
RoundKernel round_kernel(SimdLevel level) { return kernels(level).round; }

}  // namespace kvsim::engine
#endif  // HWY_ONCE
