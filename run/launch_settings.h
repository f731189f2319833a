// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>
#include <vector>

#include "run/run_loop.h"

namespace kvsim {

/// "none", "left", "right".
[[nodiscard]] std::string_view to_string(Padding padding);
/// Reads one of those. Errors (usage) name `what`, the text and what is accepted.
[[nodiscard]] Result<Padding> parse_padding(std::string_view what, std::string_view text);

/// Takes the settings that say in what an arm's sequence is computed out of `settings` and puts
/// them into `arm`, whose launch holds what counts without them. Errors (usage) name key, value and
/// what is accepted.
[[nodiscard]] Result<bool> take_launch_settings(std::vector<ArmSetting>& settings,
                                                PreparedArm& arm);

}  // namespace kvsim
