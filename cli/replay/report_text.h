// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/replay/replay.h"
#include "cli/replay/report.h"

/// The parts of a replay's report as people read them.
namespace kvsim {

/// Elements of each output.
[[nodiscard]] std::int64_t element_count(const Replay& replay);

/// "row" or "rows".
[[nodiscard]] std::string plural(std::string_view name, std::int64_t count);

/// "row 41: found 0x3c00 (1), expected 0x3c01 (1.001)".
[[nodiscard]] std::string first_text(const Replay& replay, const softfloat::Format& format,
                                     std::int64_t index, std::span<const std::byte> found,
                                     std::span<const std::byte> expected);

/// A distance in at most three digits.
[[nodiscard]] std::string distance_text(double distance);

/// "exact", "bounded" or "-".
[[nodiscard]] std::string exp_text(const ReplayOutput& output);

/// "documented", "measured", "inferred", "assumed" or "-".
[[nodiscard]] std::string evidence_text(const ReplayOutput& output);

/// What --exp-ulp moved, or "-".
[[nodiscard]] std::string band_text(const ReplayOutput& output, std::int64_t elements);

/// "splits 3, block 128".
[[nodiscard]] std::string choices_text(const Json& choices);

/// Names and values without headings.
[[nodiscard]] Table list_of(const std::vector<std::pair<std::string, std::string>>& facts);

/// Where two results differ: heads, positions and elements.
[[nodiscard]] Table map_table(const Replay& replay, const std::vector<MismatchGroup>& map,
                              std::string title);

/// One line for each output.
[[nodiscard]] Table outputs_table(const Replay& replay, const ReplayFindings& findings);

/// Who equals whom: the elements that differ between two classes.
[[nodiscard]] Table classes_table(const Replay& replay, const ReplayFindings& findings);

}  // namespace kvsim
