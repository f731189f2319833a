// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/command.h"
#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// The eight parts of `kvsim predict`. Exit status 1 where a control that must be 0 is not.
[[nodiscard]] Result<Answer> run_prediction(const ParsedOptions& options);

}  // namespace kvsim
