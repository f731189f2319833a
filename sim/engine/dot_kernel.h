// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/engine/lane_plan.h"
#include "sim/engine/numbers.h"
#include "sim/engine/simd_level.h"
#include "sim/order.h"

/// Sums in binary32 whose lanes are terms: one warp for an output, as matrix-vector products are
/// computed. Columns whose numbers lie side by side are read as they are.
namespace kvsim::engine {

/// One call: out[j] = Σ_k a[k] × b[j × b_stride + k], 0 ≤ j < columns. A NaN is any NaN.
struct DotArguments {
  std::int64_t width = 0;  ///< lanes of the order
  bool fused = false;      ///< product and addition are rounded once
  const float* a = nullptr;
  NumberPointer b;
  std::int64_t b_stride = 0;
  std::int64_t terms = 0;  ///< at least `width`
  std::int64_t columns = 0;
  float* out = nullptr;
};

/// Whether sum_dots() computes sums of so many terms in this order: one item lanes(32,1) or
/// lanes(64,1) whose lanes are joined at the largest distance first, or a torch-dot of as many
/// lanes that the terms fill.
[[nodiscard]] bool takes_dots(const Order& order, const LanePlan& plan, std::int64_t terms);

/// The lanes of such an item: DotArguments::width.
[[nodiscard]] std::int64_t dot_lanes(const OrderItem& item);

void sum_dots(const DotArguments& call, SimdLevel level);

}  // namespace kvsim::engine
