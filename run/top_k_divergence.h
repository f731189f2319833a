// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "softfloat/result.h"

/// What the largest log-probabilities alone say about two distributions.
namespace kvsim {

/// One token of a list of the largest, with the natural logarithm of its probability.
struct TokenLogProbability {
  std::int64_t token = 0;
  double log_probability = 0;

  friend bool operator==(const TokenLogProbability&, const TokenLogProbability&) = default;
};

/// KL from records without all logits. Never printed without the words "lower bound".
struct KlLowerBound {
  double nats = 0;                 ///< at least 0
  std::int64_t common_tokens = 0;  ///< in both lists
};

/// A lower bound of KL(p ‖ q) over the whole vocabulary, from the tokens C that stand in both lists
/// and one bucket R for all others:
///   Σ_C p log(p ÷ q) + P log(P ÷ Q), P = 1 − Σ_C p and Q = 1 − Σ_C q.
///
/// Proof that it is one (the log-sum inequality). f(t) = t log t is convex, so with the weights
/// q_i ÷ Q of the tokens i of R, which are positive and sum to 1, Jensen's inequality gives
///   Σ_R p_i log(p_i ÷ q_i) = Q Σ_R (q_i ÷ Q) f(p_i ÷ q_i) ≥ Q f(Σ_R p_i ÷ Q) = P log(P ÷ Q).
/// The tokens of C contribute the same to both sides. (A q_i = 0 with p_i > 0 makes the left side
/// infinite; where p_i = q_i = 0 it leaves both sides as they are.)
///
/// Recorded log-probabilities are rounded: each may be off by `error` (nats, absolute). What that
/// can do to the sum is taken off, so that the result stays a lower bound: P and Q move within what
/// the errors allow, to where the sum is smallest. No common token gives 0.
///
/// Errors (usage): a log-probability that is NaN or above 0 by more than `error`, a token twice in
/// a list, probabilities that sum to more than 1 within the error, an error that is not in [0,
/// 0.1].
[[nodiscard]] Result<KlLowerBound> kl_lower_bound(std::span<const TokenLogProbability> p,
                                                  std::span<const TokenLogProbability> q,
                                                  double error = 0x1p-44);

}  // namespace kvsim
