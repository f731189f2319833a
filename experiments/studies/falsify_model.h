// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/study.h"
#include "experiments/work.h"
#include "softfloat/result.h"

/// What falsify measures on a model, one function for each kind of piece of work, and which texts
/// that takes. All errors are of the engine.
namespace kvsim::experiments {

/// Steps behind a prompt at which layers and formats are compared: each costs the arm without a
/// cache a whole pass.
inline constexpr std::int64_t most_falsify_steps = 16;
[[nodiscard]] std::int64_t falsify_steps(const StudySetup& setup);

/// Hidden states with the cache against those without, by layer: "relative", a list of layers for
/// each step, and the steps' KL.
[[nodiscard]] Result<Json> measure_layers(const StudySetup& setup, const StudyUnit& unit);
[[nodiscard]] Result<std::vector<TextGroup>> layers_texts(const StudySetup& setup);

/// The keys and values of the prompt computed at once against token by token, in the settings of
/// the arm with the cache: "key" and "value", for each layer the relative L2 and the share of rows
/// with other bits.
[[nodiscard]] Result<Json> measure_cache(const StudySetup& setup, const StudyUnit& unit);
[[nodiscard]] Result<std::vector<TextGroup>> cache_texts(const StudySetup& setup);

/// The two arms in other formats, along the tokens of the arm with the cache: for each format that
/// the engine has, KL in binary64 and in binary32 and the relative L2 of the logits at each step.
[[nodiscard]] Result<Json> measure_formats(const StudySetup& setup, const StudyUnit& unit);
[[nodiscard]] Result<std::vector<TextGroup>> formats_texts(const StudySetup& setup);

/// A text with the cache and one without: the flip, KL of the steps before and after it.
[[nodiscard]] Result<Json> measure_text(const StudySetup& setup, const StudyUnit& unit,
                                        const Strategy& strategy);

/// KL between the steps of two texts that have nothing to do with each other, of this prompt and
/// the next: what free-running KL is whatever the arithmetic.
[[nodiscard]] Result<Json> measure_unrelated(const StudySetup& setup, const StudyUnit& unit);
[[nodiscard]] Result<std::vector<TextGroup>> unrelated_texts(const StudySetup& setup);

}  // namespace kvsim::experiments
