// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "experiments/study.h"
#include "softfloat/result.h"

/// The lines of a study's file, written and read.
namespace kvsim::experiments {

/// The object on one line, ended by a newline.
[[nodiscard]] std::string line_of(const Json& object);

/// {"unit":index,"part":…,"prompt":…,"seed":…,"values":…}, ended by a newline.
[[nodiscard]] std::string unit_line(std::size_t index, const StudyUnit& unit, Json values);

/// A head line and the count of pieces that it announces.
struct StudyHead {
  Json head;
  std::size_t units = 0;  ///< at most 2^24
};
/// Errors (file) name the field, its value and what is accepted.
[[nodiscard]] Result<StudyHead> parse_head_line(std::string_view line);

/// The line of a piece.
struct StudyLine {
  std::size_t index = 0;
  StudyRecords::Unit unit;
};
/// Errors (file) name the field and what is accepted.
[[nodiscard]] Result<StudyLine> parse_unit_line(std::string_view line);

}  // namespace kvsim::experiments
