// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/replay/replay.h"
#include "softfloat/result.h"

namespace kvsim {

/// One result compared with another one, and where they differ.
struct MappedComparison {
  Comparison summary;
  double max_row_ulp = 0;  ///< of rows along the last axis
  std::vector<MismatchGroup> map;
};

/// Everything that is said about the results of a replay.
struct ReplayFindings {
  std::vector<std::string> digests;          ///< SHA-256 of each output's bytes
  std::vector<std::size_t> classes;          ///< of each output, 0, 1, …
  std::vector<std::size_t> representatives;  ///< the first output of each class
  std::vector<MappedComparison> expected;    ///< of each output with the tensor; empty without one
  /// Of representatives i and j > i, in the order (0,1), (0,2), … (1,2), …; nothing where their
  /// formats differ. The map is filled where i = 0.
  std::vector<std::optional<MappedComparison>> pairs;
};

/// Compares every output with `expected`, where there is one, and with the others.
[[nodiscard]] ReplayFindings find_differences(const Replay& replay,
                                              const std::optional<Expected>& expected);

/// The report of a replay of `path`, and exit code 1 where an output differs from `expected`.
[[nodiscard]] Answer replay_answer(const Replay& replay, const std::string& path,
                                   const std::optional<Expected>& expected);

/// JSON's `result`.
[[nodiscard]] Json replay_result_json(const Replay& replay, const ReplayFindings& findings);

/// "A", "B", … "Z", "AA": how people see the number of a class.
[[nodiscard]] std::string class_name(std::size_t number);

/// The indices of an element in a tensor of that shape.
[[nodiscard]] std::vector<std::int64_t> element_at(std::span<const std::int64_t> shape,
                                                   std::int64_t index);

}  // namespace kvsim
