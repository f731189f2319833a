// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention/run.h"

/// Sees the numbers of a kernel between its steps. It changes nothing and costs nothing where there
/// is none.
namespace kvsim {

/// After which step an observer sees numbers, of one query row each. In blocks of keys, in this
/// order: scores, maximum, rescale, exponents, exponentials, row_sum, rescaled_output,
/// probabilities, output (where the row sum is made on the matrix unit: after the probabilities);
/// then split_output and log_sum of a split, then merged_output. Eager kernels have one block, and
/// of these steps only scores, stored_scores, scaled_scores, exponents, exponentials, row_sum,
/// probabilities, output.
enum class AttentionStep : std::uint8_t {
  scores,           ///< [keys] q·k as the product gives it
  stored_scores,    ///< [keys] rounded to storage
  scaled_scores,    ///< [keys] times the scale, rounded to storage
  maximum,          ///< [1] the running maximum of the scores, this block's included
  rescale,          ///< [1] the factor of what the blocks before gave
  exponents,        ///< [keys] of 2, where the kernel takes 2^x; of e otherwise
  exponentials,     ///< [keys]
  row_sum,          ///< running sums, whose sum is that of the row
  rescaled_output,  ///< [head_dim] times the factor
  probabilities,    ///< [keys] as they multiply V
  output,           ///< [head_dim] with this block's P·V
  split_output,     ///< [head_dim] divided by the row sum, not rounded to storage
  log_sum,          ///< [1] the logarithm of the split's sum of exponentials
  merged_output,    ///< [head_dim] of all splits, not rounded to storage
};

/// Which row, and which keys.
struct AttentionPlace {
  std::int64_t head = 0;  ///< query head
  std::int64_t query = 0;
  std::int64_t split = 0;
  std::int64_t first_key = 0;
  std::int64_t keys = 0;
};

class AttentionObserver {
 public:
  AttentionObserver() = default;
  AttentionObserver(const AttentionObserver&) = delete;
  AttentionObserver& operator=(const AttentionObserver&) = delete;
  virtual ~AttentionObserver() = default;

  /// The numbers are there during the call alone.
  virtual void see(AttentionStep step, const AttentionPlace& place,
                   std::span<const float> numbers) = 0;
};

/// run_attention() in one thread, with an observer. Only eager kernels by orders and online tiles
/// show their steps, and only without a soft cap.
[[nodiscard]] Result<AttentionResult> observe_attention(const AttentionKernel& kernel,
                                                        const AttentionProblem& problem,
                                                        SimdLevel level,
                                                        AttentionObserver& observer);

}  // namespace kvsim
