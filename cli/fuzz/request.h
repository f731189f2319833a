// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.h"
#include "fuzz/flip/case.h"
#include "fuzz/flip/search.h"
#include "softfloat/result.h"

namespace kvsim {

/// How long a search runs, and what it reads and leaves.
struct SearchLimits {
  std::uint64_t seed = 0;
  std::int64_t islands = 8;
  int threads = 1;
  std::int64_t runs = 0;                ///< to make; with `seconds` the most
  std::optional<std::int64_t> seconds;  ///< after which no epoch is begun
  std::optional<std::string> state;     ///< file that the search is read from and stored to
  std::optional<std::string> corpus;    ///< folder for what is found
};

/// Reads --seed, --islands, --threads, --runs, --time, --state and --corpus. Errors (usage).
[[nodiscard]] Result<SearchLimits> search_limits(const ParsedOptions& options,
                                                 std::int64_t runs_unless_told);

/// What `kvsim fuzz flip` was asked for.
struct FlipRequest {
  fuzz::CaseShape shape;
  fuzz::ValueRanges ranges;
  SearchLimits limits;
};

/// Reads the options. Errors (usage) name the option.
[[nodiscard]] Result<FlipRequest> flip_request(const ParsedOptions& options);

}  // namespace kvsim
