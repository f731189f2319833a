// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/flip/attention_record.h"
#include "fuzz/flip/blame.h"
#include "fuzz/flip/case.h"
#include "sim/attention/kernel.h"
#include "sim/double_double.h"

/// The errors of an attention kernel's steps, each against the exact step on the numbers that it
/// was given, and what the result is without some of them.
namespace kvsim::fuzz {

/// The errors of one step, element by element; of steps that give head_dim numbers, their sum along
/// the difference of the tokens' rows. Empty: the kernel has no such step.
struct StepErrors {
  std::vector<DoubleDouble> errors;
  std::size_t rounding = 0;  ///< its index among the roundings
};

/// One block of keys.
struct BlockErrors {
  std::int64_t first_key = 0;
  /// Exact q·k; where queries, or queries and keys, are scaled before, times the scale.
  std::vector<DoubleDouble> scores;
  DoubleDouble maximum;
  DoubleDouble maximum_before;    ///< in the block before; `maximum` in the first one
  StepErrors of_scaled_operands;  ///< on q·k
  StepErrors of_scores, of_stored_scores, of_scaled_scores, of_exponents, of_exponentials;
  StepErrors of_rescaling;  ///< the factor's error, then that of its products
  StepErrors of_row_sum, of_probabilities;
  std::vector<StepErrors> of_values;  ///< P·V, instruction by instruction
};

struct SplitErrors {
  std::vector<BlockErrors> blocks;
  /// By the row sum; where probabilities are divided, rounding the split's output to storage.
  StepErrors of_division;
  StepErrors of_log_sum;
};

/// What is fixed for a head.
struct HeadInput {
  const FlipCase& flip_case;
  const AttentionKernel& kernel;
  std::int64_t head = 0;
  std::span<const float> outputs;  ///< of the head, as stored
  const HeadRecord& record;
};

/// One query head and its share of the difference of the logits.
struct HeadErrors {
  bool divides_first = false;       ///< probabilities are divided by the row sum, then multiply V
  bool sums_stored = false;         ///< the row sum is that of the probabilities as they multiply V
  bool natural = false;             ///< exponents are to base e
  DoubleDouble score_scale;         ///< of q·k in scaled scores: 1 ÷ √head_dim, or 1
  DoubleDouble scale;               ///< of the scores in exponents: 1 ÷ √head_dim, or 1
  std::vector<DoubleDouble> along;  ///< of each key's value: Σ over the difference of the rows
  std::vector<SplitErrors> splits;
  StepErrors of_merge;
  StepErrors of_output;
  std::size_t first = 0;  ///< its roundings …
  std::size_t last = 0;   ///< … one behind

  /// The head's share with some roundings exact; one flag for each.
  [[nodiscard]] DoubleDouble share(const std::vector<char>& exact) const;
};

/// Appends the head's roundings.
[[nodiscard]] HeadErrors head_errors(const HeadInput& input, std::vector<Rounding>& roundings);

}  // namespace kvsim::fuzz
