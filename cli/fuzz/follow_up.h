// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/fuzz/request.h"
#include "cli/options.h"
#include "fuzz/flip/blame.h"
#include "fuzz/flip/case.h"
#include "fuzz/flip/shrink.h"
#include "softfloat/result.h"

namespace kvsim {

/// What became of a case that was found.
struct FlipFollowUp {
  std::optional<fuzz::ShrunkCase> shrunk = {};
  std::optional<Result<fuzz::Blame>> blame = {};  ///< of the shrunk case where there is one
  std::vector<std::string> files = {};  ///< that were written: the case, and the shrunk one
};

/// Shrinks the case, unless --no-shrink is given, blames it where it is a flip, and writes both
/// cases into the corpus folder. Errors: of shrinking, of the files.
[[nodiscard]] Result<FlipFollowUp> follow_up(const SearchLimits& limits,
                                             const ParsedOptions& options,
                                             const fuzz::FlipCase& found);

}  // namespace kvsim
