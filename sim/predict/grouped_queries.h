// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/attention_pair.h"
#include "sim/predict/difference.h"
#include "softfloat/result.h"

/// Grouped-query attention: does sharing K/V heads amplify rounding errors? Part 4 of predict.
namespace kvsim {

/// One source of rounding errors, seen by the query heads that share a K/V head.
struct GroupedError {
  std::string source;           ///< "the kernel", "K and V rounded to storage", "both"
  double mean_correlation = 0;  ///< ρ̄ between the query heads of a group
  double formula = 1;           ///< √(1 + (R − 1)ρ̄)
  double sum_gain = 1;          ///< plain sum over a group's heads, against independent errors
  /// The same of multi-head attention: the same q, and a K/V head of its own for each query head.
  double multi_head_sum_gain = 1;
  double amplification = 1;  ///< sum_gain ÷ multi_head_sum_gain
  /// After a random output projection: its gain with shared K/V heads ÷ that without.
  double projected = 1;
};

struct GroupedQueries {
  std::int64_t group = 1;    ///< R
  double ceiling = 1;        ///< √R, reached where all heads of a group err alike
  std::int64_t samples = 0;  ///< errors of each head
  std::vector<GroupedError> errors;
  /// Control: the kernel with K and V repeated for every query head, as many splits forced; bits
  /// that differ from the grouped run. Must be none.
  VectorDifference repeated;
};

struct GroupedQueriesOptions {
  AttentionPairOptions attention;  ///< its cache-on side is measured
  std::int64_t projection_outputs = 512;
  std::uint64_t seed = 1;
};

/// Measures with the numbers of a grouped layer. `multi_head` has the same q and a K/V head for
/// each query head. `unrounded` is the grouped layer before K and V were rounded to storage, and
/// `multi_head_unrounded` likewise; without them, or without multi_head, what needs them is left
/// out. Errors as run_attention().
struct GroupedNumbers {
  const AttentionNumbers* grouped = nullptr;
  const AttentionNumbers* multi_head = nullptr;
  const AttentionNumbers* unrounded = nullptr;
  const AttentionNumbers* multi_head_unrounded = nullptr;
};
[[nodiscard]] Result<GroupedQueries> measure_grouped_queries(const GroupedQueriesOptions& options,
                                                             const GroupedNumbers& numbers);

}  // namespace kvsim
