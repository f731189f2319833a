// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// Reads a list of integers from lowest to highest: numbers and ranges A..B (both ends included),
/// separated by commas, as in "1,64" or "2..16". Numbers stay in the order given and may repeat.
/// Errors (usage) name `what`, the text and what is accepted; at most `most` numbers are.
[[nodiscard]] Result<std::vector<std::int64_t>> parse_integer_list(std::string_view what,
                                                                   std::string_view text,
                                                                   std::int64_t lowest,
                                                                   std::int64_t highest,
                                                                   std::size_t most);

/// The list that an option gives; empty when it was not given.
[[nodiscard]] Result<std::vector<std::int64_t>> integer_list_option(const ParsedOptions& options,
                                                                    std::string_view name,
                                                                    std::int64_t lowest,
                                                                    std::int64_t highest,
                                                                    std::size_t most);

}  // namespace kvsim
