// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/lane_plan.h"
#include "sim/engine/program.h"
#include "sim/engine/simd_level.h"

/// The seam to the kernels that sum several rows at once, so that they share the loads of b.
namespace kvsim::engine {

inline constexpr std::int64_t rows_per_group = 4;
inline constexpr std::int64_t most_row_columns = 64;  ///< of one call, at any level

/// One call: out[i × out_stride + j] = Σ_k a[i × a_stride + k] × b[k × b_stride + j] for
/// 0 ≤ i < rows_per_group and 0 ≤ j < RowKernel::columns.
struct RowKernelArguments {
  const Program* program = nullptr;  ///< without `exact` and `unit` steps
  const LanePlan* plan = nullptr;
  const LanePlan* round_plans = nullptr;  ///< of program->formats
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  const float* b = nullptr;
  std::int64_t b_stride = 0;
  /// Null, or for every step the row of b at which its run starts, one row after another from
  /// there: what RowSums copied so that far strides do not miss the caches.
  const std::int64_t* b_rows = nullptr;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  std::byte* scratch = nullptr;  ///< row_scratch_bytes × program->slots, aligned to 64 bytes
};

/// Bytes of scratch memory for each slot of a program, at any level.
inline constexpr std::size_t row_scratch_bytes = 1024;

/// The function of one level and how many columns it computes; null where this build or this CPU
/// lacks it.
struct RowKernel {
  std::int64_t columns = 0;
  void (*sum)(const RowKernelArguments&) = nullptr;
};
[[nodiscard]] RowKernel row_kernel(SimdLevel level);

}  // namespace kvsim::engine
