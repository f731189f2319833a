// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/tree_probe.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What a sum is believed to be: enough to compute it again to the bit.
struct SumModel {
  std::optional<Order> order;  ///< in the grammar of sim/order.h; nullopt: `tree` alone
  SumTree tree;                ///< used where there is no order
  Product product = Product::fused;
  /// Without an order: the products of terms from this one on are rounded to the accumulator, but
  /// every sum that such a term is part of is kept in binary64.
  std::optional<std::int64_t> wide_from;
  softfloat::Format input;
  softfloat::Format accumulator;
  softfloat::Format output;
  bool mean = false;  ///< the sum is divided by the number of terms before it is rounded
};

/// The sums of left [rows][terms] and right [columns][terms] as [rows][columns]; where `only` is
/// given, those of its rows and columns, the others +0. Errors as sum_matrix().
[[nodiscard]] Result<std::vector<float>> replay(const SumModel& model, std::int64_t terms,
                                                std::span<const float> left,
                                                std::span<const float> right,
                                                const SumClass* only = nullptr);

}  // namespace kvsim::gpu
