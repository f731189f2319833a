// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "experiments/setup.h"
#include "run/arm.h"
#include "softfloat/result.h"

/// What changes the logits in `boundary`.
namespace kvsim::experiments {

/// A source of error: an arm that is compared with the first one.
struct ErrorSource {
  std::string_view name;
  /// As parse_arm() reads it; its settings come on top of the first arm's. Empty: the setup's
  /// second arm.
  std::string_view arm;
  std::string_view what;  ///< for people
};

/// In the order in which they stand in records and tables. Sources of different size, because
/// those of the cache alone flip few tokens.
[[nodiscard]] std::span<const ErrorSource> error_sources();

/// The second arm of a source. Nothing where it is the first arm, or the setup's second one under
/// another name. Errors (usage): of parse_arm().
[[nodiscard]] Result<std::optional<Arm>> arm_of(const ErrorSource& source, const StudySetup& setup);

/// Whether the engine has it: an arm of the first prompt can be opened. Errors that are not of a
/// setting that the engine lacks.
[[nodiscard]] Result<bool> has_arm(const StudySetup& setup, const Arm& arm);

}  // namespace kvsim::experiments
