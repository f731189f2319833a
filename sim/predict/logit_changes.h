// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/columns.h"
#include "sim/linear.h"
#include "sim/predict/flips.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// How the last hidden states of two runs become logits.
struct LogitOptions {
  softfloat::Format storage;
  float norm_epsilon = 1e-5F;
  double logit_deviation = 1;  ///< standard deviation of one token's logits
  std::int64_t trials = 1;     ///< pairs of tokens
  std::uint64_t seed = 1;
  EngineOptions engine;
};

/// Standard deviation of the logits with which the largest of `vocabulary` normal ones is
/// `top_logit`: top_logit ÷ Φ⁻¹(1 − 1 ÷ vocabulary).
[[nodiscard]] double logit_deviation(double top_logit, std::int64_t vocabulary);

/// Changes from one hidden state to another of the logits of 2 · trials tokens, in pairs. Both
/// states go through a root-mean-square norm, rounded to storage, and through a slice of a seeded
/// output matrix with independent rows; the products are summed in binary64. Errors of
/// fill_random_weights().
[[nodiscard]] Result<std::vector<LogitChange>> logit_changes(const LogitOptions& options,
                                                             std::span<const float> on,
                                                             std::span<const float> off);

/// The output matrix alone, on one and the same hidden state under two linear kernels: the most
/// that the difference of two logits can move before it is rounded to storage, from the running
/// bounds of both kernels' sums, largest over `pairs` pairs of tokens. Nothing where a bound is not
/// known for a kernel's matrix unit. Errors of plan_linear() and fill_random_weights().
struct SingleOperator {
  const LinearKernel* on = nullptr;
  const LinearKernel* off = nullptr;
  std::int64_t on_rows = 1;  ///< rows of the launch
  std::int64_t off_rows = 1;
  std::int64_t outputs = 1;  ///< of the whole output matrix
  std::int64_t multiprocessors = 1;
  std::int64_t pairs = 1;
};
[[nodiscard]] Result<std::optional<double>> single_operator_bound(const LogitOptions& options,
                                                                  const SingleOperator& matrix,
                                                                  std::span<const float> state);

}  // namespace kvsim
