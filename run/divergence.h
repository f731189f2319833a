// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/double_double.h"
#include "softfloat/result.h"

/// How far apart two next-token distributions are, from all their logits.
namespace kvsim {

/// What turns logits into log-probabilities.
struct SoftmaxNormalizer {
  double largest = 0;    ///< the largest logit
  DoubleDouble log_sum;  ///< log Σ e^(logit − largest), at least 0
};

/// The normalizer of a vocabulary's logits. A logit of −infinity has probability 0. Errors (usage):
/// no logits, a NaN, +infinity, or −infinity everywhere.
[[nodiscard]] Result<SoftmaxNormalizer> softmax_normalizer(std::span<const double> logits);

/// The natural logarithm of the probability of a token with that logit: (logit − largest) − log_sum
/// in double-double, rounded to binary64. Error: half a unit in the last place of the result and
/// 2^−98. −infinity for a logit of −infinity.
[[nodiscard]] double log_probability(const SoftmaxNormalizer& normalizer, double logit);

/// Of the two distributions p and q, in nats.
struct Divergence {
  double kl = 0;  ///< Σ p log(p ÷ q); +infinity where q gives 0 to a token that p does not
  double js = 0;  ///< Jensen–Shannon: ½ KL(p ‖ m) + ½ KL(q ‖ m) with m = (p + q) ÷ 2; at most log 2

  friend bool operator==(const Divergence&, const Divergence&) = default;
};

/// The evaluation floor. What divergence() returns lies within
/// divergence_relative_error × exact value + divergence_floor of the exact divergence of the two
/// softmaxes: what is far above the floor is a difference of the logits, not of this evaluation.
inline constexpr double divergence_relative_error = 0x1p-46;
inline constexpr double divergence_floor = 0x1p-120;

/// KL and JS over the whole vocabulary. Equal logits give exactly 0, and no result is negative.
///
/// Both are computed as sums of terms that are none of them negative, so that nothing cancels
/// however close p and q are. With h = log(q ÷ p) of a token,
///   KL = Σ p (e^h − 1 − h), because Σ q − Σ p = 0, and
///   JS = Σ m χ(tanh(h ÷ 2)) with χ(u) = ½ ((1 + u) log(1 + u) + (1 − u) log(1 − u)).
/// h is the difference of two log-probabilities in double-double; an error δ that all h share
/// (of the normalizers, below 2^−97) moves KL by δ² ÷ 2 and JS by less, since the sums are
/// stationary in it. For |h| ≤ 1 the terms come from their power series in h and u, else from p and
/// q, where cancellation costs a factor below 10. Exponentials and logarithms are those of
/// sim/exp.h and sim/log.h; sums are double-double; the other operations round to binary64.
///
/// Errors (usage): those of softmax_normalizer(), with the name of the list ("p", "q"), and lists
/// of unequal length.
[[nodiscard]] Result<Divergence> divergence(std::span<const double> p_logits,
                                            std::span<const double> q_logits);

/// Where two lists of logits are not equal.
struct LogitDifference {
  std::int64_t differing = 0;  ///< tokens
  double largest = 0;          ///< |difference|; where one of the two is infinite, KL says so

  friend bool operator==(const LogitDifference&, const LogitDifference&) = default;
};

/// Of lists of equal length.
[[nodiscard]] LogitDifference logit_difference(std::span<const double> p,
                                               std::span<const double> q);

}  // namespace kvsim
