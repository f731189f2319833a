// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

namespace kvsim::bench {

/// The yardstick: out[j] = Σ_k a[k] × b[k][j] in binary16, every product and every sum rounded, in
/// sequence over k, as a bare loop of intrinsics without any generality. Inputs and results are
/// binary16 numbers as floats. `columns` must be a multiple of `columns_per_step`.
struct BareLoop {
  const char* name;
  const char* instruction_set;  ///< level of the engine that it is compared with
  std::int64_t columns_per_step;
  void (*run)(const float* a, const float* b, std::int64_t terms, std::int64_t columns, float* out);
};

/// Loops over F16C conversions that this CPU can run: 256 and 512 bits wide, each with 1, 2, 4 and
/// 8 vectors side by side.
std::span<const BareLoop> bare_loops();

/// The same sums on AVX512-FP16 arithmetic, with binary16 codes as inputs and results; null where
/// the CPU has none.
using BareHalfLoop = void (*)(const std::uint16_t* a, const std::uint16_t* b, std::int64_t terms,
                              std::int64_t columns, std::uint16_t* out);
BareHalfLoop bare_half_loop();  ///< columns must be a multiple of 128

}  // namespace kvsim::bench
