// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/command.h"
#include "cli/output.h"
#include "fuzz/flip/shrink.h"
#include "softfloat/result.h"

namespace kvsim {

/// Sizes before and after.
[[nodiscard]] Table shrink_table(const fuzz::ShrunkCase& shrunk);

/// The field `shrunk`: sizes, score and the case.
[[nodiscard]] Json shrink_json(const fuzz::ShrunkCase& shrunk);

/// `kvsim fuzz shrink FILE`.
[[nodiscard]] Result<Answer> run_shrink(const ParsedOptions& options);

}  // namespace kvsim
