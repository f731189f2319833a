// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// Instruction sets that the engine is compiled for, narrowest first. Every one gives the same
/// bits; only the time differs.
enum class SimdLevel : std::uint8_t {
  scalar,  ///< portable C++, no vector instructions
  avx2,    ///< AVX2 with FMA and F16C, 8 float lanes
  avx512,  ///< AVX-512 F, BW, DQ and VL, 16 float lanes
};

/// "scalar", "avx2" or "avx512".
[[nodiscard]] std::string_view simd_level_name(SimdLevel level);

/// The levels that this build holds and this CPU and its system can run, narrowest first; never
/// empty.
[[nodiscard]] std::vector<SimdLevel> list_simd_levels();

/// The widest level of list_simd_levels().
[[nodiscard]] SimdLevel best_simd_level();

/// The level of that name; the best one for "" or "auto". The caller decides where the name comes
/// from (the command line reads KVSIM_SIMD). Errors: ErrorKind::usage for an unknown name,
/// ErrorKind::unavailable for a level that this CPU or this build lacks.
[[nodiscard]] Result<SimdLevel> select_simd_level(std::string_view name);

}  // namespace kvsim
