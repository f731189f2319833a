// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/flip/case.h"
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
  std::vector<double> score;           ///< q·k ÷ √head_dim
  std::vector<double> score_absolute;  ///< Σ|q k| ÷ √head_dim
  std::vector<double> weight;          ///< e^(score − largest score)
  std::vector<double> along;           ///< Σ_d w_d v_d
  std::vector<double> along_absolute;  ///< Σ_d |w_d v_d|
  double weight_sum = 0;
  double difference = 0;      ///< this head's share of the difference of the logits
  double largest_score = 0;   ///< of `score`
  double largest_query = 0;   ///< max |q|
  double largest_key = 0;     ///< max |k|
  double largest_value = 0;   ///< max |v|
  double token_absolute = 0;  ///< Σ_d |w_d|
};

struct ExactAttentionCase {
  ExactDifference difference;
  std::vector<ExactHead> heads;
};

/// CaseKind::sum.
[[nodiscard]] ExactDifference exact_sum_difference(const FlipCase& flip_case);

/// CaseKind::attention. Numbers of which products or exponentials overflow give a value that is not
/// finite.
[[nodiscard]] ExactAttentionCase exact_attention_case(const FlipCase& flip_case);

}  // namespace kvsim::fuzz
