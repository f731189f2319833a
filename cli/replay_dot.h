// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/command.h"
#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// `kvsim replay dot`: --unit, --tensors, --expect, --out.
[[nodiscard]] Result<Answer> replay_dot(const ParsedOptions& options);

}  // namespace kvsim
