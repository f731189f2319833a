// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "fuzz/flip/blame.h"
#include "fuzz/flip/case.h"
#include "softfloat/result.h"

namespace kvsim {

/// "Path on: 1 of 63 roundings decides: token 0, root/0*5: terms 0..58 + term 59"
[[nodiscard]] std::string blame_text(const fuzz::CaseShape& shape, const fuzz::Blame& blame);

/// The field `blame`.
[[nodiscard]] Json blame_json(const fuzz::CaseShape& shape, const fuzz::Blame& blame);

/// `kvsim fuzz blame FILE`.
[[nodiscard]] Result<Answer> run_blame(const ParsedOptions& options);

}  // namespace kvsim
