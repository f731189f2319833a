// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study.h"
#include "softfloat/result.h"

/// The file of a study: a head line, then one line for each piece of work, in their order. Equal
/// setups give equal bytes, whatever the threads, the shards and the interruptions.
namespace kvsim::experiments {

/// The schema that this version writes and reads.
inline constexpr std::string_view study_schema = "kvsim.study/1";

/// One part of several that are computed apart: pieces i, i + of, i + 2·of, …
struct Shard {
  std::int64_t index = 0;
  std::int64_t of = 1;  ///< 1: everything
};

/// Reads "i/n", 0 ≤ i < n ≤ 4096. Errors (usage).
[[nodiscard]] Result<Shard> parse_shard(std::string_view text);

/// The head line's object: study, version, engine, model, arms, strategies, prompts, tokens.
[[nodiscard]] Json head_of(std::string_view study, const StudySetup& setup,
                           std::span<const StudyUnit> units);

/// How a study is computed; none of it changes a byte.
struct StudyRunOptions {
  int threads = 1;  ///< pieces of work at once
  bool resume = false;
  Shard shard = {};
  /// Takes the share of the pieces' rows that is done, 0 … 1; may be empty. Never called by two
  /// threads at once.
  std::function<void(double)> progress = {};
};

/// Computes a study into a file, which must not exist; with `resume` it may, and hold the first
/// lines of the same study, which are then taken as they stand. Errors: of the study and its
/// engine; (file) of RecordWriter, and of a kept line that is not this study's.
[[nodiscard]] Result<bool> run_study(const StudyRow& row, const StudySetup& setup,
                                     const std::string& path, const StudyRunOptions& options);

/// Reads a whole file. Errors (file) name path, line and field: no such file, another schema, a
/// line that is none, pieces that are missing.
[[nodiscard]] Result<StudyRecords> read_study(const std::string& path);

/// Joins the files of all shards of a study into a new one, with the bytes of a run in one piece.
/// Errors (file): heads that differ, pieces that are missing or in two files with other bytes.
[[nodiscard]] Result<bool> merge_studies(std::span<const std::string> parts,
                                         const std::string& path);

}  // namespace kvsim::experiments
