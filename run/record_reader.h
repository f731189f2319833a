// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "run/record.h"
#include "softfloat/result.h"

namespace kvsim {

/// What the reader accepts; it bounds the memory that a line can make it use.
struct RecordLimits {
  static constexpr std::size_t file_bytes = std::size_t{1} << 32;
  static constexpr std::size_t line_bytes = std::size_t{1} << 24;
  static constexpr std::size_t text_bytes = 4096;  ///< of one text in a line
  static constexpr std::size_t top = 1024;         ///< tokens of one list of the largest
};

/// One line without its newline. It must hold exactly the fields of
/// docs/schema/kvsim.record.2.json. Errors (file) name field, value and what is accepted, and no
/// file.
[[nodiscard]] Result<RecordLine> parse_record_line(std::string_view line);

/// A file of records, in the order of the file.
struct Records {
  std::vector<PromptRecord> prompts;
  std::vector<StepRecord> steps;
  std::vector<ComparisonRecord> comparisons;
  std::size_t torn_bytes = 0;  ///< behind the last newline, left by an interrupted run; not read
};

/// Reads the records in `text`. `source` stands at the front of every error: "FILE: line 3: …".
/// Also errors: two head lines of one prompt, a step before the head line of its prompt, two steps
/// with the same prompt, arm and step, steps of an arm (or of two that are compared) not in order,
/// an arm that the head lacks, and no whole line at all.
[[nodiscard]] Result<Records> parse_records(std::string_view text, std::string_view source);

/// The same from a file. Errors (file) also of opening it.
[[nodiscard]] Result<Records> read_records(const std::string& path);

}  // namespace kvsim
