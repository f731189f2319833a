// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

namespace kvsim::bench {

/// Products of binary32 matrices, out[i][j] = Σ_k a[i][k] × b[k][j], as a compiler's user would
/// write them: multiplied and added in one loop over k, with a block of rows and vectors in
/// registers. All matrices lie without gaps.
struct NativeLoop {
  const char* name;
  const char* instruction_set;  ///< level of the engine that it is compared with
  bool fused;                   ///< one rounding for each term instead of two
  std::int64_t row_step;        ///< rows must be a multiple of this
  std::int64_t column_step;     ///< columns must be a multiple of this
  void (*run)(const float* a, const float* b, std::int64_t rows, std::int64_t terms,
              std::int64_t columns, float* out);
};

/// The loops that this CPU can run: 256 and 512 bits wide, 4 rows × 4 vectors, and for 256 bits,
/// which have no registers for 16 sums and 4 vectors of b, also 4 rows × 2 vectors.
std::span<const NativeLoop> native_loops();

}  // namespace kvsim::bench
