// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/columns.h"
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

}  // namespace kvsim
