// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "softfloat/result.h"

/// How a token is chosen from its logits.
namespace kvsim {

/// The rule. The steps act in the order in which they stand here.
struct Sampling {
  double temperature = 0;  ///< logits are divided by it; 0: greedy, and nothing else counts
  std::int64_t top_k = 0;  ///< keeps the k largest logits; 0: all
  double top_p = 1;        ///< then keeps the fewest that have this probability together; 1: all
  std::uint64_t seed = 1;

  friend bool operator==(const Sampling&, const Sampling&) = default;
};

/// An error (usage) that names the field, its value and what is accepted: temperature 0 or from
/// 2^−20 to 2^20, top_k from 0, top_p above 0 and at most 1.
[[nodiscard]] Result<bool> check_sampling(const Sampling& sampling);

/// The rule as printed: "greedy (ties go to the lower index)",
/// "temperature 0.7, top-k 50, seed 1 (ties go to the lower index)".
[[nodiscard]] std::string to_text(const Sampling& sampling);

/// The uniform number in (0, 1) that chooses the token at `step` of `prompt`. It depends on these
/// and the seed alone: every arm draws the same one, whatever the batch, the threads or the tokens
/// before.
[[nodiscard]] double sampling_uniform(std::uint64_t seed, std::uint64_t prompt, std::uint64_t step);

/// The token that is chosen. Largest first, equal logits by the lower index, is the order in which
/// top-k and top-p keep tokens; top-k keeps exactly k, also among equals. The kept tokens then
/// share (0, 1) in the order of their index, each as much as its probability among them, and the
/// token in whose part sampling_uniform() lies is chosen. So two arms that draw the same number
/// choose another token only where a boundary between two parts has moved across it: a small change
/// of the logits, also one that exchanges two tokens of nearly equal logits, moves boundaries a
/// little.
///
/// Errors (usage): those of check_sampling(); no logits, a NaN, +infinity, −infinity everywhere.
[[nodiscard]] Result<std::int64_t> sample_token(std::span<const double> logits,
                                                const Sampling& sampling, std::uint64_t prompt,
                                                std::uint64_t step);

}  // namespace kvsim
