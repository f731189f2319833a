// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/column_walks.h"
#include "sim/double_double.h"

/// What a case comes to without rounding errors, in double-double arithmetic. Below, w is the first
/// token's row less the second's.
namespace kvsim::fuzz {

/// The difference of the two exact logits, the first token's less the second's.
struct ExactDifference {
  DoubleDouble value;
  double error = 0;  ///< |value − exact| is at most that
};

/// One query head of exact attention, key by key: what bounds on a kernel's error are made of.
struct ExactHead {
  std::vector<double> query;           ///< q
  std::vector<double> token;           ///< w, rounded to binary64
  std::vector<double> score;           ///< q·k ÷ √head_dim
  std::vector<double> score_absolute;  ///< Σ|q k| ÷ √head_dim, from above
  std::vector<double> weight;          ///< e^(score − largest score)
  std::vector<double> along;           ///< Σ_d w_d v_d
  std::vector<double> along_absolute;  ///< Σ_d |w_d v_d|, from above
  double weight_sum = 0;
  double difference = 0;  ///< this head's share of the difference of the logits
  double largest_score = 0;
};

/// K and V of one head.
struct ExactKeys {
  ColumnMatrix k;        ///< [head_dim][keys]
  ColumnMatrix v;        ///< [keys][head_dim]
  double largest_value;  ///< max |v|
};

struct ExactAttentionCase {
  ExactDifference difference;
  std::vector<ExactHead> heads;  ///< of q
  std::vector<ExactKeys> keys;   ///< of K and V

  [[nodiscard]] const ExactKeys& keys_of(std::size_t head) const {
    return keys[head / (heads.size() / keys.size())];
  }
};

/// Σ a·b.
[[nodiscard]] DoubleDouble exact_dot(std::span<const float> a, std::span<const float> b);

/// CaseKind::sum.
[[nodiscard]] ExactDifference exact_sum_difference(const FlipCase& flip_case);

/// CaseKind::attention. Numbers of which products or exponentials overflow give a value that is not
/// finite.
[[nodiscard]] ExactAttentionCase exact_attention_case(const FlipCase& flip_case);

}  // namespace kvsim::fuzz
