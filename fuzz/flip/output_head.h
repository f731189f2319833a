// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/engine/simd_level.h"
#include "sim/error_bounds.h"
#include "sim/linear.h"
#include "sim/sum_tree.h"
#include "softfloat/result.h"

namespace kvsim::fuzz {

/// Outputs of the launch in which a linear kernel computes logits: a vocabulary of 2^15. The two
/// tokens are its first two.
inline constexpr std::int64_t head_outputs = std::int64_t{1} << 15;

/// What a head is made for.
struct HeadShape {
  softfloat::Format storage;     ///< of states and rows
  std::int64_t terms = 1;        ///< numbers of a state
  std::int64_t launch_rows = 1;  ///< states of the launch
};

/// The linear layer that makes logits of a state: its kernel's order and formats.
class OutputHead {
 public:
  /// Errors (usage): an unknown kernel; one that does not take the shape, or whose error has no
  /// known bound.
  static Result<OutputHead> make(std::string_view kernel, const HeadShape& shape);

  /// The logits of both tokens, whose rows of the output matrix are `tokens`, [2][terms]; NaN where
  /// they cannot be computed. The level changes time only.
  [[nodiscard]] std::array<double, 2> logits(std::span<const float> state,
                                             std::span<const float> tokens,
                                             SimdLevel level = best_simd_level()) const;

  /// A bound on how far the difference of these logits is from that of exact sums.
  [[nodiscard]] double bound(std::span<const float> state, std::span<const float> tokens,
                             const std::array<double, 2>& logits) const;

 private:
  /// How one token's sum comes about.
  struct Sum {
    Order order;
    std::optional<SumTree> tree;  ///< of an order with a matrix unit
    double relative = 0;          ///< where the order does not tell all: of Σ|a·b|
  };

  OutputHead(const LinearKernel& kernel, const HeadShape& shape, LinearPlan plan)
      : kernel_(&kernel), shape_(shape), plan_(std::move(plan)) {}

  [[nodiscard]] double sum_bound(const Sum& sum, std::span<const float> state,
                                 std::span<const float> row) const;

  const LinearKernel* kernel_;
  HeadShape shape_;
  LinearPlan plan_;
  std::array<Sum, 2> sums_;
};

}  // namespace kvsim::fuzz
