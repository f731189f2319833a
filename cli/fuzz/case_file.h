// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/options.h"
#include "fuzz/flip/case.h"
#include "fuzz/flip/score.h"
#include "softfloat/result.h"

namespace kvsim {

/// A case and what scores it.
struct CaseFile {
  std::string path;
  fuzz::FlipCase flip_case;
  fuzz::FlipScorer scorer;
};

/// A file of a case of any kind.
struct CaseText {
  std::string path;
  std::string text;
};

/// The file that is the second positional of `kvsim fuzz ACTION FILE`. Errors (usage) without one
/// or with more.
[[nodiscard]] Result<CaseText> case_text(const ParsedOptions& options);

/// The case file that is the second positional of `kvsim fuzz ACTION FILE`. Errors (usage) without
/// one or with more, those of the file with its name.
[[nodiscard]] Result<CaseFile> case_file(const ParsedOptions& options);

}  // namespace kvsim
