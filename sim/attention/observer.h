// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention/run.h"

/// Sees the numbers of a kernel between its steps. It changes nothing and costs nothing where there
/// is none.
namespace kvsim {

/// After which step an observer sees numbers, of one query row each. In blocks of keys, in the
/// order in which they stand below, those that the kernel makes; where the row sum is made on the
/// matrix unit it comes after the probabilities.
///
/// - Online tiles, PyTorch on CPUs: blocks as the kernel has them. llama.cpp on CPUs: of one key,
///   with the rescaled output (rounded to storage) before the maximum, where it is rescaled.
/// - Eager kernels: one block; without exponents, exponentials and row_sum where a softmax kernel
///   makes the probabilities.
/// - Paged attention: one block in each partition, which is a split; split_output where there are
///   several.
enum class AttentionStep : std::uint8_t {
  scaled_query,     ///< [head_dim] as it enters q·k, where q and k are scaled before
  scaled_keys,      ///< [keys][head_dim]
  scores,           ///< [keys] q·k as the product gives it
  stored_scores,    ///< [keys] rounded to storage
  scaled_scores,    ///< [keys] times the scale, and rounded to storage where the kernel does so
  maximum,          ///< [1] the running maximum of the scores, this block's included
  rescale,          ///< [1] the factor of what the blocks before gave
  exponents,        ///< [keys] of 2, where the kernel takes 2^x; of e otherwise
  exponentials,     ///< [keys]
  row_sum,          ///< running sums, whose sum is that of the row
  rescaled_output,  ///< [head_dim] times the factor
  probabilities,    ///< [keys] as they multiply V
  output,           ///< [head_dim] with this block's P·V
  split_output,     ///< [head_dim] divided by the row sum; of paged attention rounded to storage
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

/// run_attention() in one thread, with an observer. With a soft cap, scores are not all shown; nor
/// is how llama.cpp merges the keys of several threads.
[[nodiscard]] Result<AttentionResult> observe_attention(const AttentionKernel& kernel,
                                                        const AttentionProblem& problem,
                                                        SimdLevel level,
                                                        AttentionObserver& observer);

}  // namespace kvsim
