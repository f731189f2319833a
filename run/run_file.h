// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>

#include "run/run_loop.h"

namespace kvsim {

/// What a run into a file did.
struct RunFileSummary {
  RunSummary run;
  std::int64_t kept_prompts = 0;  ///< whole ones that the file had already
};

/// Runs into a file of records, which must not exist; with `resume` it may, and hold the first
/// lines of the same run. Its whole prompts are then taken as they stand, the last one, which may
/// be unfinished, is computed again and compared, and the file ends with the bytes of an
/// uninterrupted run. output.line also gets the lines that were kept. A run that fails before its
/// first step leaves no new file. Errors: those of PreparedRun::run() and RecordWriter, and (file)
/// a kept line that is no record, or not this run's.
[[nodiscard]] Result<RunFileSummary> run_to_file(const PreparedRun& run, const std::string& path,
                                                 bool resume, const RunOutput& output);

}  // namespace kvsim
