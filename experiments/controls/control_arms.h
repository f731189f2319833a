// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/setup.h"
#include "softfloat/result.h"

/// The arms of the controls: those of the setup with other settings. No engine has all of them;
/// which ones it has, it says itself.
namespace kvsim::experiments {

/// The arm with KEY=VALUE,… in place of what it has under those keys. A dispatch drops the lines of
/// the one before, but not its formats. Errors (usage): of parse_arm().
[[nodiscard]] Result<Arm> with_settings(const Arm& arm, std::string_view settings);

/// The same with another way to build its cache.
[[nodiscard]] Arm with_constructor(Arm arm, CacheConstructor constructor, std::int64_t rows = 0);

/// The second arm with the formats of the first: what is left between them is arithmetic.
[[nodiscard]] Arm with_formats_of(const Arm& second, const Arm& first);

/// The first of the settings that the engine accepts for the arm and has kernels for, ready to run.
/// Errors (unavailable): it accepts none; the message is what it says of the first.
[[nodiscard]] Result<StudyArm> first_accepted(const Engine& engine, const Arm& arm,
                                              std::span<const std::string_view> settings);

/// Kernels whose results do not depend on how many rows a pass has.
inline constexpr std::array<std::string_view, 2> batch_invariant{"dispatch=batch-invariant",
                                                                 "dispatch=batch-invariant-fp32"};
/// Every sum exact, rounded to storage once.
inline constexpr std::array<std::string_view, 1> exact_sums{"dispatch=exact"};

/// The arm with the cache in the widest arithmetic that the engine has: what rounding errors are
/// measured against. Errors (unavailable): nothing wider than the arm itself.
[[nodiscard]] Result<StudyArm> reference_arm(const StudySetup& setup);

/// The unit roundoff 2^−p of what an arm stores: of logits or of K and V, whichever is larger.
[[nodiscard]] Result<double> unit_roundoff(const StudyArm& arm);

/// The token ids of a prompt of the setup.
[[nodiscard]] std::span<const TokenId> tokens_of(const StudySetup& setup, std::int64_t prompt);

}  // namespace kvsim::experiments
