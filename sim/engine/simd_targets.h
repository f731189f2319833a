// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <hwy/targets.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/engine/simd_level.h"

/// Which of the functions that foreach_target.h compiled once per instruction set a level means.
/// For the HWY_ONCE part of such a file alone: highway.h says there which targets the file has.
/// Highway's own dispatch keeps the chosen level in a global; here the caller passes it.

#if HWY_TARGETS & HWY_AVX2
#define KVSIM_IN_AVX2(function) N_AVX2::function
#else
#define KVSIM_IN_AVX2(function) nullptr
#endif
#if HWY_TARGETS & HWY_AVX3
#define KVSIM_IN_AVX3(function) N_AVX3::function
#else
#define KVSIM_IN_AVX3(function) nullptr
#endif

/// `function` of the enclosing namespace's targets, in the order of SimdLevel; null where this
/// build lacks the target. An initialiser of LevelFunctions.
#define KVSIM_AT_EACH_LEVEL(function) \
  {N_SCALAR::function, KVSIM_IN_AVX2(function), KVSIM_IN_AVX3(function)}

namespace kvsim::engine {

/// One function pointer for each SimdLevel.
template <typename Pointer>
using LevelFunctions = std::array<Pointer, 3>;

/// Whether this CPU and its system can run a level.
inline bool cpu_runs(SimdLevel level) {
  // Asking costs a CPUID each time, which a virtual machine makes slower than a small sum.
  static const std::int64_t supported = hwy::SupportedTargets();
  constexpr std::array<std::int64_t, 3> targets{HWY_SCALAR, HWY_AVX2, HWY_AVX3};
  return level == SimdLevel::scalar || (supported & targets[static_cast<std::size_t>(level)]) != 0;
}

/// The function of a level; null where this build or this CPU lacks the level.
template <typename Pointer>
Pointer function_at(SimdLevel level, const LevelFunctions<Pointer>& functions) {
  return cpu_runs(level) ? functions[static_cast<std::size_t>(level)] : nullptr;
}

/// The same; the portable function where the level is lacking.
template <typename Pointer>
Pointer function_or_scalar(SimdLevel level, const LevelFunctions<Pointer>& functions) {
  const Pointer found = function_at(level, functions);
  return found == nullptr ? functions[0] : found;
}

}  // namespace kvsim::engine
