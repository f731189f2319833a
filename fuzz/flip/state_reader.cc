// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/state_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kvsim::fuzz {

StateReader::StateReader(std::string_view text, std::size_t done)
    : rest_(text.substr(done)),
      line_(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(done), '\n')) {}

Result<bool> StateReader::integers(std::string_view key, std::span<std::int64_t> values) {
  ++line_;
  std::string_view line = rest_.substr(0, rest_.find('\n'));
  rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
  bool fits = line.starts_with(key);
  if (fits) line.remove_prefix(key.size());
  for (std::int64_t& value : values) {
    fits = fits && line.starts_with(' ');
    if (!fits) break;
    line.remove_prefix(1);
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
    fits = failure == std::errc() && value >= 0;
    if (fits) line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  if (fits && line.empty()) return true;
  return Error{ErrorKind::file,
               fmt::format("line {}: '{}' and {} numbers are accepted", line_, key, values.size())};
}

std::string_view StateReader::next_case() {
  constexpr std::string_view end_of_case = "\nend\n";
  const std::size_t end = rest_.find(end_of_case);
  const std::string_view text =
      rest_.substr(0, end == std::string_view::npos ? rest_.size() : end + end_of_case.size());
  rest_.remove_prefix(text.size());
  case_line_ = line_;
  line_ += std::count(text.begin(), text.end(), '\n');
  return text;
}

Error StateReader::in_case(const Error& error) const {
  return {ErrorKind::file, fmt::format("the case behind line {}: {}", case_line_, error.message)};
}

}  // namespace kvsim::fuzz
