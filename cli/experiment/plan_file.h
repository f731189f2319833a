// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// The file that --config names: the path itself, or, of a word without '/' and '.', the plan of
/// that name in the source tree's data/plans. Errors (usage): a name that there is none of.
[[nodiscard]] Result<std::string> plan_path(const std::string& name);

/// Adds the options of a plan file to those of the command line, which count before it. A plan is a
/// TOML file of at most 1 MiB; its keys are the options' names without dashes in front, its values
/// texts, numbers, true for a flag, and lists for options that may be repeated. Errors: a file that
/// cannot be read or is no TOML (file); a key that is no option, a value of another kind (file).
/// Each names path, key and what is accepted.
[[nodiscard]] Result<ParsedOptions> with_plan_file(const ParsedOptions& options,
                                                   std::span<const OptionSpec> rows,
                                                   const std::string& path);

}  // namespace kvsim
