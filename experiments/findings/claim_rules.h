// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "experiments/findings/claims.h"

/// The rules of the table of claims; each takes the result of the study that its row names.
namespace kvsim::experiments {

/// Reproduced where KL is above 10 nats at every step of every text; explained where it is large
/// behind the fork alone.
[[nodiscard]] Judgement judge_kl_above_ten(const Json& behaviour);
/// Reproduced where every text parts.
[[nodiscard]] Judgement judge_every_text(const Json& behaviour);
/// Reproduced where more prompts are answered rightly with the cache alone than without it alone,
/// at 5 % by McNemar's exact test; cannot tell where none is answered rightly on one side alone.
[[nodiscard]] Judgement judge_accuracy(const Json& behaviour);
/// Of the error source with the most texts that part. Reproduced where early ones have the larger
/// KL after the same tokens, too; explained where only after their own.
[[nodiscard]] Judgement judge_early_flips(const Json& boundary);
/// Of a model with a head_dim of 256: reproduced where the relative difference does not grow from
/// the first layer that differs to the last.
[[nodiscard]] Judgement judge_flat_drift(const Json& drift);
/// Explained where the rounding of stored values is flat in the length and sums in binary16 are
/// not.
[[nodiscard]] Judgement judge_error_and_length(const Json& falsify);
/// Reproduced where KL after the same tokens falls by eight orders from binary16 to binary32.
[[nodiscard]] Judgement judge_eight_orders(const Json& falsify);
/// Reproduced where the first layer's relative difference grows with the number of query heads that
/// share keys and values, all else equal: a rank correlation whose interval lies above 0.
[[nodiscard]] Judgement judge_grouped_queries(const Json& gqa);
/// Explained where hidden states of all layers restore the step at which they are put in, and the
/// paper's mean over later steps hides it.
[[nodiscard]] Judgement judge_residual_patches(const Json& localise);
/// Reproduced where texts follow K and V of the other cache, in both directions.
[[nodiscard]] Judgement judge_cache_holds_cause(const Json& localise);

}  // namespace kvsim::experiments
