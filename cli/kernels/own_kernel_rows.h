// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/kernels/own_kernels.h"
#include "softfloat/result.h"

/// The user's kernel file as text: TOML, one table of the list `kernel` for each row.
namespace kvsim {

/// What a name is made of, for messages.
inline constexpr std::string_view accepted_own_names =
    "small letters, digits, '-', '_' and '.', at most 64, of which the first is a letter or a "
    "digit";

[[nodiscard]] bool is_own_kernel_name(std::string_view text);

/// The rows of a file's text. Errors (usage): what is no TOML, or a row that lacks something or has
/// another value than accepted, with `path` and line.
[[nodiscard]] Result<std::vector<OwnKernel>> parse_own_kernels(const std::string& text,
                                                               const std::string& path);

/// One row, with its heading.
[[nodiscard]] std::string own_kernel_text(const OwnKernel& kernel);

}  // namespace kvsim
