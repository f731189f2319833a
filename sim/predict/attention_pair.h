// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/attention/run.h"
#include "sim/error_summary.h"
#include "sim/predict/attention_numbers.h"
#include "sim/predict/difference.h"
#include "softfloat/result.h"

/// One attention layer computed in two ways: part 1 of predict.
namespace kvsim {

/// A kernel and how it is launched.
struct AttentionChoice {
  const AttentionKernel* kernel = nullptr;
  AttentionLaunch launch;
};

/// What a kernel did, and how far it is from exact attention.
struct AttentionSide {
  const AttentionKernel* kernel = nullptr;
  std::int64_t queries = 0;  ///< of one call
  std::int64_t keys = 0;     ///< of the last call
  std::int64_t splits = 1;   ///< of the last call
  std::int64_t block_columns = 0;
  bool exp_bounded = false;
  softfloat::Format output;
  ErrorSummary error;  ///< against exact attention; without bounds
};

/// The same queries under both kernels.
struct AttentionPair {
  std::int64_t positions = 0;  ///< queries compared, the last ones of the sequence
  AttentionSide on;
  AttentionSide off;
  VectorDifference difference;            ///< on against off, in off's output format
  std::vector<VectorDifference> by_head;  ///< the same for each query head
  bool whole_prefix = true;  ///< cache-off computed every query; otherwise the last ones, not split
};

struct AttentionPairOptions {
  AttentionLayer layer;
  AttentionChoice on;
  AttentionChoice off;
  std::int64_t positions = 1;  ///< 1 to query_len
  AttentionOptions run;        ///< threads, SIMD level, exponential
  /// Multiply-adds of q·k above which cache-off computes its last 128 queries alone.
  std::int64_t most_prefill_work = std::int64_t{1} << 31;
};

/// Computes the last `positions` queries twice: cache-on one query at a time on the keys up to it,
/// cache-off all of query_len at once. Errors as run_attention().
[[nodiscard]] Result<AttentionPair> compare_attention(const AttentionPairOptions& options,
                                                      const AttentionNumbers& numbers);

/// One side alone: outputs [positions][query_heads][head_dim] of the last queries.
struct AttentionOutputs {
  std::vector<float> values;
  AttentionSide side;  ///< without `error`
};
[[nodiscard]] Result<AttentionOutputs> decode_outputs(const AttentionPairOptions& options,
                                                      const AttentionNumbers& numbers);
[[nodiscard]] Result<AttentionOutputs> prefill_outputs(const AttentionPairOptions& options,
                                                       const AttentionNumbers& numbers);

/// Exact outputs of the last `positions` queries, [positions][query_heads][head_dim].
[[nodiscard]] std::vector<DoubleDouble> exact_outputs(const AttentionLayer& layer,
                                                      const AttentionNumbers& numbers,
                                                      std::int64_t positions, int threads);

}  // namespace kvsim
