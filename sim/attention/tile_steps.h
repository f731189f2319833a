// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention/kernel.h"
#include "sim/attention/row_steps.h"

/// The steps of one row in one block of keys, between its two products: docs/attention.md, "Online
/// tiles".
namespace kvsim::attention {

/// How scores become exponents: what the mask and the rule make of the scale.
struct Exponents {
  ExponentFold fold = ExponentFold::fused;
  SoftCapRule soft_cap_rule = SoftCapRule::folded;
  float soft_cap = 0;         ///< 0: none
  float cap_factor = 0;       ///< of scores, before the soft cap
  float query_factor = 1;     ///< queries are multiplied by it, where fold is natural
  float remaining_scale = 1;  ///< the scale that is left: of the exponent and of the lse
  float scale_log2 = 1;       ///< remaining_scale · log2 e

  /// From scale and soft cap.
  static Exponents make(const TileRule& rule, float scale, float soft_cap);
  /// Whether exponents are to base e.
  [[nodiscard]] bool natural() const { return fold == ExponentFold::natural; }

  /// What happens to scores before the maximum is taken.
  void finish_scores(std::span<float> scores) const;
  /// Scores become the exponents of p, relative to the maximum.
  void subtract(const RowSteps& steps, std::span<float> scores, float maximum) const;
  /// The exponent of the rescale factor.
  [[nodiscard]] float of_rescale(float before, float after) const;
  /// The lse of a row.
  [[nodiscard]] float log_sum(LogSumRule rule, float maximum, float sum) const;
  /// The lse of a row whose maximum is UnrisenMaximum::finite_mask, which is not scaled; to base 2
  /// or e.
  [[nodiscard]] static float unscaled_log_sum(float maximum, float sum, bool base_2);
};

/// Scores times scale, and c · tanh(s · (scale ÷ c)) where there is a soft cap c.
void scale_and_cap(std::span<float> scores, float scale, float soft_cap);

inline constexpr std::int64_t row_sum_parts = 4;  ///< running sums of a row, at most

/// Adds a block's p, a multiple of 8 with +0 in the columns that are masked or missing, to the
/// running sums, which were rescaled by r.
void add_to_row_sum(RowSumRule rule, std::span<const float> p, float r, std::span<float> sums);

/// The sum over all blocks.
[[nodiscard]] float finish_row_sum(RowSumRule rule, std::span<const float> sums);

/// Whether FlashAttention-4 takes the polynomial for column j of a block of `columns`.
[[nodiscard]] bool is_emulated(std::int64_t j, std::int64_t columns);

}  // namespace kvsim::attention
