// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/case_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim::fuzz {
namespace {

/// What a message may repeat of a file: printable ASCII, cut.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 48;
  std::string result;
  for (const char c : text.substr(0, most)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > most ? "…" : "");
}

}  // namespace

std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string_view word = rest.substr(0, std::min(rest.find(' '), rest.size()));
  rest.remove_prefix(word.size());
  return word;
}

std::string floor_line(double floor) {
  if (!(floor > 0)) return {};
  const auto bits = softfloat::from_double(floor);
  return fmt::format("floor {}\n", softfloat::to_hex_float(softfloat::binary64, bits));
}

Result<bool> CaseLines::read_floor(double& floor) {
  constexpr std::size_t longest = 40;  // characters
  if (!next_is("floor ")) return true;
  const auto word = value_of("floor");
  if (!word) return word.error();
  floor = 0;
  if (word->size() <= longest) {
    const auto value = softfloat::parse_number(softfloat::binary64, *word);
    if (value) floor = softfloat::to_double(softfloat::binary64, value->bits);
  }
  if (floor > 0 && std::isfinite(floor)) return true;
  return wrong(*word, "a number above 0");
}

std::optional<std::string_view> CaseLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') return line;
  }
  ++number_;
  return std::nullopt;
}

bool CaseLines::next_is(std::string_view word) const {
  CaseLines ahead = *this;
  return ahead.next().value_or("").starts_with(word);
}

Result<std::string_view> CaseLines::value_of(std::string_view key) {
  const auto line = next();
  const std::string accepted = fmt::format("'{} …'", key);
  if (!line) return ends(accepted);
  std::string_view rest = *line;
  if (next_word(rest) != key || rest.size() < 2) return wrong(*line, accepted);
  return rest.substr(1);
}

Error CaseLines::wrong(std::string_view found, std::string_view accepted) const {
  return {ErrorKind::file, fmt::format("line {}: '{}' stands where {} is accepted", number_,
                                       shown(found), accepted)};
}

Error CaseLines::ends(std::string_view accepted) const {
  return {ErrorKind::file,
          fmt::format("line {}: the text ends where {} is accepted", number_, accepted)};
}

Error CaseLines::here(const Error& error) const {
  return {ErrorKind::file, fmt::format("line {}: {}", number_, error.message)};
}

}  // namespace kvsim::fuzz
