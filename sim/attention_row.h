// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/attention_arithmetic.h"
#include "sim/double_double.h"
#include "sim/engine/simd_level.h"

/// One query row of attention: computed under an order with bounds, and exactly.
namespace kvsim {

/// The inputs of one query row.
struct AttentionRow {
  std::int64_t keys = 0;  ///< keys that the query sees: the first `keys` of K and V
  std::int64_t head_dim = 0;
  std::span<const double> q;             ///< [head_dim]
  std::span<const double> k_transposed;  ///< [head_dim][key_stride]
  std::int64_t key_stride = 0;
  std::span<const double> v;  ///< [keys][head_dim]
  SimdLevel simd = best_simd_level();
};

/// Computed numbers with bounds on their distance to the exact result for the same inputs.
struct BoundedValues {
  std::vector<double> value;
  std::vector<double> running;   ///< from the intermediate results that were computed
  std::vector<double> a_priori;  ///< from the inputs alone
};

/// q·k, times 1/√head_dim rounded to the accumulator, rounded to storage if the arithmetic says so.
[[nodiscard]] BoundedValues scores_of_row(const AttentionArithmetic& arithmetic, const Order& order,
                                          const AttentionRow& row);

/// exp(score − largest score) in the accumulator format, their sum, and the quotients.
struct SoftmaxOfRow {
  BoundedValues row_sum;  ///< one element
  BoundedValues p;
};
[[nodiscard]] SoftmaxOfRow softmax_of_row(const AttentionArithmetic& arithmetic, const Order& order,
                                          std::span<const double> scores, SimdLevel simd);

/// P·V, rounded to storage if the arithmetic says so.
[[nodiscard]] BoundedValues values_of_row(const AttentionArithmetic& arithmetic, const Order& order,
                                          const AttentionRow& row, std::span<const double> p);

/// All of it: the outputs, with a running bound on the distance to exact attention. The a-priori
/// bounds are left empty.
[[nodiscard]] BoundedValues attention_of_row(const AttentionArithmetic& arithmetic,
                                             const AttentionOrders& orders,
                                             const AttentionRow& row);

/// Exact softmax of given scores, to about 100 bits.
struct ExactSoftmax {
  DoubleDouble row_sum;
  std::vector<DoubleDouble> p;
};
[[nodiscard]] ExactSoftmax exact_softmax(std::span<const DoubleDouble> scores);

/// q·k ÷ √head_dim: the sum exact, the factor to about 100 bits.
[[nodiscard]] std::vector<DoubleDouble> exact_scores(const AttentionRow& row);

/// Σ p·v for p given to about 100 bits; the sum exact, rounded to about 106 bits.
[[nodiscard]] std::vector<DoubleDouble> exact_values(const AttentionRow& row,
                                                     std::span<const DoubleDouble> p);

/// score − largest, exactly where both are finite. A score of −∞ (a product that overflowed) stays
/// −∞ below a finite largest score, so that its probability is 0.
[[nodiscard]] DoubleDouble score_difference(DoubleDouble score, DoubleDouble largest);

/// The value rounded to a format, ties to even. The double-double is taken as it stands.
[[nodiscard]] double round_to(const softfloat::Format& format, DoubleDouble value);

/// What the scores (or probabilities) that the next stage reads look like when they are exact.
[[nodiscard]] const softfloat::Format& scores_format(const AttentionArithmetic& arithmetic);
[[nodiscard]] const softfloat::Format& p_format(const AttentionArithmetic& arithmetic);
[[nodiscard]] const softfloat::Format& out_format(const AttentionArithmetic& arithmetic);

}  // namespace kvsim
