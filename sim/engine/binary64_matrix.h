// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/engine/columns.h"
#include "sim/engine/numbers.h"

namespace kvsim {

/// A product of matrices in binary64, out[i][j] = Σ_k x[i][k] × w[k][j]: what other results are
/// compared with. Products and sums are rounded one by one, in blocks of binary64_block terms whose
/// sums are added in turn; every SIMD level and number of threads gives the same bits.
struct Binary64Problem {
  std::int64_t rows = 0;
  std::int64_t terms = 0;
  std::int64_t columns = 0;
  const double* x = nullptr;  ///< [rows][terms]
  NumberPointer w;            ///< w[k × w_stride + j], as floats or codes
  std::int64_t w_stride = 0;
  bool w_transposed = false;  ///< w[j × w_stride + k] instead
  double* squares = nullptr;  ///< [columns] or null: Σ_k w[k][j]², added in the same way
};

inline constexpr std::int64_t binary64_block = 64;

/// out[i × problem.columns + j]. `out` must not overlap the operands.
void multiply_binary64(const Binary64Problem& problem, double* out,
                       const EngineOptions& options = {});

}  // namespace kvsim
