// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/output.h"
#include "run/first_difference.h"
#include "run/record_reader.h"

namespace kvsim {

/// One side of `kvsim diff`.
struct DiffSide {
  std::string path;
  std::string arm;
  const Records* records = nullptr;
};

/// What two records say to the question whether they are equal.
enum class DiffVerdict : std::uint8_t {
  equal,        ///< every step has equal logits, by their digests
  different,    ///< something differs
  cannot_tell,  ///< nothing differs, but not everything was recorded or is in both
};

[[nodiscard]] DiffVerdict verdict_of(const RecordComparison& comparison);

/// The report, with the sentence that says what was found as its headline.
[[nodiscard]] Report diff_report(const DiffSide& first, const DiffSide& second,
                                 const RecordComparison& comparison);

}  // namespace kvsim
