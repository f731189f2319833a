// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/engine/columns.h"
#include "sim/exp_models.h"
#include "softfloat/result.h"

namespace kvsim {

/// How run_attention() runs. `engine` changes no bit.
struct AttentionOptions {
  EngineOptions engine;
  /// Captured results of ex2.approx, or an error to move its results by, where the kernel uses it.
  std::optional<ExpOptions> exp;
};

/// What a kernel gives.
struct AttentionResult {
  /// [query_heads][query_len − first_query][head_dim]; a NaN is the quiet NaN 0x7fc00000. +0 where
  /// a query sees no key (NaN from eager kernels, as softmax over nothing is).
  std::vector<float> out;
  /// [query_heads][query_len − first_query]: logarithm (base e) of the sum of exponentials of the
  /// scaled scores, as the kernel computes it; −∞ where a query sees no key. Empty where the kernel
  /// has none.
  std::vector<float> lse;
  std::int64_t splits = 1;         ///< into which the keys were split, empty ones included
  std::int64_t block_columns = 0;  ///< keys of a block; kv_len where there are no blocks
  bool exp_bounded = false;        ///< the bits hang on an exponential that is known within bounds
};

/// Computes one attention layer with exactly the kernel's roundings and orders: the page
/// docs/attention.md. Threads split heads and queries.
///
/// Errors (usage): a size below 1, heads that do not divide, a storage format that the kernel has
/// not, a head_dim beyond its tiles, a mask or launch that it cannot do, scores or split outputs of
/// more than 2^32 numbers; (unavailable) a SIMD level that this CPU lacks.
[[nodiscard]] Result<AttentionResult> run_attention(const AttentionKernel& kernel,
                                                    const AttentionProblem& problem,
                                                    const AttentionOptions& options = {});

}  // namespace kvsim
