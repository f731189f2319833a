// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/search_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/sink.h"
#include "model/mapped_file.h"

namespace kvsim {

Result<std::string> read_text(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Error in_file(const std::string& path, const Error& error) {
  return {error.kind, fmt::format("{}: {}", printable(path), error.message)};
}

Result<bool> run_search(const SearchLimits& limits, const ParsedOptions& options,
                        const RunnableSearch& search) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds between_stores{10};
  std::error_code none;
  if (limits.state && std::filesystem::exists(*limits.state, none)) {
    const auto text = read_text(*limits.state);
    if (!text) return text.error();
    const Result<bool> read = search.read_state(*text);
    if (!read) return in_file(*limits.state, read.error());
  }
  Progress progress("fuzz flip", options);
  const Clock::time_point start = Clock::now();
  Clock::time_point stored = start;
  Result<bool> failure = true;
  const auto store = [&] {
    if (!limits.state || !failure) return;
    const auto done = write_output_file(*limits.state, search.state_text());
    if (!done) failure = done.error();
    stored = Clock::now();
  };
  Result<bool> done = search.run(limits.runs, [&](std::int64_t runs) {
    const std::chrono::duration<double> passed = Clock::now() - start;
    double share = static_cast<double>(runs) / static_cast<double>(limits.runs);
    if (limits.seconds) {
      share = std::max(share, passed.count() / static_cast<double>(*limits.seconds));
    }
    progress.show(std::min(1.0, share));
    if (Clock::now() - stored > between_stores) store();
    return failure.has_value() && share < 1;
  });
  if (!done) return done;
  store();
  return failure;
}

Result<std::string> write_case(const SearchLimits& limits, std::string_view name,
                               const std::string& text) {
  const std::string folder = limits.corpus.value_or("");
  if (folder.empty()) return std::string();
  std::string file = fmt::format("{}/{}", folder, name);
  std::error_code failed;  // told by writing the file
  std::filesystem::create_directories(folder, failed);
  const auto written = write_output_file(file, text);
  if (!written) return written.error();
  return file;
}

}  // namespace kvsim
