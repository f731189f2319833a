// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/prompts.h"

namespace kvsim {

/// Takes the prompt and the answer out of one JSON object; `field` as PromptOptions has it. What is
/// wrong, or nothing.
[[nodiscard]] std::optional<std::string> read_prompt_line(std::string_view line,
                                                          std::string_view field, Prompt& prompt);

}  // namespace kvsim
