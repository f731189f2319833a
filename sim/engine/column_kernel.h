// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/lane_plan.h"
#include "sim/engine/program.h"
#include "sim/engine/simd_level.h"

/// The seam between portable code and the code that is compiled once per instruction set.
namespace kvsim::engine {

/// Bytes of scratch memory that a kernel needs for each slot of a program, at any level.
inline constexpr std::size_t scratch_bytes_per_slot = 1024;

/// Sums one range of terms exactly in one column and rounds once: positions[0 … count) of column
/// `column`, and +0 as one more term with from_zero.
class ExactNode {
 public:
  virtual ~ExactNode() = default;
  [[nodiscard]] virtual float sum(const std::int64_t* positions, std::int64_t count, bool from_zero,
                                  std::int64_t column) const = 0;
};

/// One call of a kernel: out[j] = Σ_k a[k] × b[k × stride + j] for begin ≤ j < end.
struct ColumnKernelArguments {
  const Program* program = nullptr;
  const LanePlan* plan = nullptr;
  const LanePlan* round_plans = nullptr;  ///< for each of program->formats
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t terms = 0;
  std::int64_t stride = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  const ExactNode* exact_node = nullptr;
  float* out = nullptr;
  double* magnitudes = nullptr;  ///< or null; Σ|rounded results| of each column, see columns.cc
  std::byte* scratch = nullptr;  ///< scratch_bytes_per_slot × program->slots
  /// Room for `terms` rows of one vector each, used only where end − begin is less than the lanes
  /// of a vector: 16 × terms floats are enough at every level.
  float* padded_rows = nullptr;
};
using ColumnKernel = void (*)(const ColumnKernelArguments&);

/// One call of a rounding kernel: out[i] = in[i] rounded to the format of the plan, 0 ≤ i < count.
struct RoundKernelArguments {
  const LanePlan* plan = nullptr;
  const float* in = nullptr;
  float* out = nullptr;
  std::int64_t count = 0;
};
using RoundKernel = void (*)(const RoundKernelArguments&);

/// The kernels of a level; null where this build or this CPU lacks it.
[[nodiscard]] ColumnKernel column_kernel(SimdLevel level);
[[nodiscard]] RoundKernel round_kernel(SimdLevel level);

}  // namespace kvsim::engine
