// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/fuzz/request.h"
#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// A search, as far as time and files go.
struct RunnableSearch {
  std::function<Result<bool>(std::string_view)> read_state;
  std::function<std::string()> state_text;
  /// Runs to a total, and asks between two epochs, with the runs made so far, whether to go on.
  std::function<Result<bool>(std::int64_t total, const std::function<bool(std::int64_t)>& go_on)>
      run;
};

/// The content of a file. Errors (file).
[[nodiscard]] Result<std::string> read_text(const std::string& path);

/// The same failure with the file's name in front.
[[nodiscard]] Error in_file(const std::string& path, const Error& error);

/// Runs until the runs or the time are used up; the state is read first, where its file is there,
/// and stored now and then, and at the end. Errors: of the search, of the file.
[[nodiscard]] Result<bool> run_search(const SearchLimits& limits, const ParsedOptions& options,
                                      const RunnableSearch& search);

/// Writes a case into the corpus folder; holds the file's name, or "" without a folder.
[[nodiscard]] Result<std::string> write_case(const SearchLimits& limits, std::string_view name,
                                             const std::string& text);

}  // namespace kvsim
