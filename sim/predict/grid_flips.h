// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

/// Flips of greedy tokens whose logits are numbers of a grid, in closed form.
namespace kvsim {

/// The chance that a logit which was rounded to a grid of step 1 rounds to another number of the
/// grid, `moves` steps away, after an error N(0, deviation²): where before rounding it lay is
/// unknown, each place as likely. It is E[max(0, 1 − |moves − deviation·Z|)].
[[nodiscard]] double move_probability(std::int64_t moves, double deviation);

/// E[moves²] of such a logit, in steps².
[[nodiscard]] double moved_square(double deviation);

/// The chance that the second largest of two such logits, `margin` ≥ 0 steps below, becomes the
/// larger one, where both get independent errors of that deviation. A tie that was one stays with
/// the same token; a new one is won by either with chance ½. From a deviation of 64 steps on the
/// grid counts no more: Φ(−margin ÷ (√2 deviation)).
[[nodiscard]] double flip_probability(double margin, double deviation);

/// The same where errors are normal and nothing is rounded: Φ(−margin ÷ deviation) for the
/// deviation of the difference of the two; 0 where that is 0.
[[nodiscard]] double normal_flip_probability(double margin, double deviation);

}  // namespace kvsim
