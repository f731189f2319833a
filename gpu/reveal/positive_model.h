// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/reveal/positive_operator.h"
#include "sim/exp_models.h"
#include "sim/operators/norm.h"
#include "sim/operators/softmax.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The function that makes the terms of a softmax.
struct ExpChoice {
  ExpModel exp = ExpModel::correctly_rounded;
  std::int64_t group = 0;  ///< elements behind the last whole group use `tail_exp`; 0: none
  ExpModel tail_exp = ExpModel::correctly_rounded;

  friend bool operator==(const ExpChoice&, const ExpChoice&) = default;
};

/// What a softmax, log-softmax or RMS norm is believed to be: a row of sim/operators.
struct PositiveModel {
  PositiveKind kind = PositiveKind::softmax;
  Order order;                                     ///< of the sum
  ExpChoice exp;                                   ///< softmax
  SoftmaxResult result = SoftmaxResult::quotient;  ///< softmax
  Product product = Product::rounded;              ///< norm: how squares enter their sum
  RootRule root = RootRule::one_over_root;         ///< norm
  WeightRule weight = WeightRule::after_rounding;  ///< norm
  softfloat::Format output;
};

/// The operator of `call` (rows of `terms` elements; ε must be given for a norm) as the simulator's
/// softmax or norm kernel computes it with this order and these rules.
[[nodiscard]] Result<std::vector<float>> replay(const PositiveModel& model, std::int64_t terms,
                                                const PositiveOperator::Call& call);

/// "sleef-u10", or "sleef-u10, libm-expf behind the last whole 8".
[[nodiscard]] std::string to_string(const ExpChoice& exp);
/// "e × (1 ÷ sum)", "e ÷ sum", "x − max − log sum".
[[nodiscard]] std::string_view to_string(SoftmaxResult result);
/// "1 ÷ √v", "1/√v rounded once".
[[nodiscard]] std::string_view to_string(RootRule root);
/// "after rounding", "before rounding", "1 + weight".
[[nodiscard]] std::string_view to_string(WeightRule weight);

/// The exp models, and pairs of them for elements behind the last whole group of 4, 8, 16, 32 or
/// 64, whose e^t all elements of a softmax have; the simplest first. Asked for by rows in which
/// nothing but the large term counts, so that results are the terms themselves. Empty: none, or
/// results that do not show it (log-softmax).
[[nodiscard]] Result<std::vector<ExpChoice>> find_exp(PositiveOperator& of, std::uint64_t seed);

}  // namespace kvsim::gpu
