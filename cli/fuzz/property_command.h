// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// `kvsim fuzz property list`, `kvsim fuzz property NAME` and `kvsim fuzz property all`.
[[nodiscard]] Result<Answer> run_fuzz_property(const ParsedOptions& options);

/// `kvsim fuzz replay FILE` where the file's `text` is a property case.
[[nodiscard]] Result<Answer> replay_property(const std::string& path, std::string_view text);

}  // namespace kvsim
