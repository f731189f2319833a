// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <vector>

#include "cli/options.h"
#include "run/run_loop.h"

namespace kvsim {

/// The options that say what arms are and what both have in common.
[[nodiscard]] std::span<const OptionSpec> pair_option_rows();

/// The other options of arms: more of them, their batch, and how tokens are chosen.
[[nodiscard]] std::span<const OptionSpec> arm_option_rows();

/// The arms of --arm (`on` and `off` without it), each with the lines of --set that it does not set
/// itself; behind them one more for each --plant: the first arm with the defect, called
/// LABEL+NAME. An arm that was written `on` is called on. Errors (usage).
[[nodiscard]] Result<std::vector<Arm>> arms_from(const ParsedOptions& options);

/// The two arms of a pair; an error (usage) where there are more or fewer.
[[nodiscard]] Result<std::array<Arm, 2>> two_arms_from(const ParsedOptions& options);

/// Sampling, counts and the launch's options. Arms, neighbours and version are left as they are.
[[nodiscard]] Result<RunOptions> run_options_from(const ParsedOptions& options);

}  // namespace kvsim
