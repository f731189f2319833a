// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/number_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/printable.h"

namespace kvsim {
namespace {

/// One number, or both ends of a range.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Result<Range> parse_range(std::string_view what, std::string_view word, std::int64_t lowest,
                          std::int64_t highest) {
  const std::size_t dots = word.find("..");
  const auto first = parse_integer(what, word.substr(0, dots), lowest, highest);
  if (!first) return first.error();
  if (dots == std::string_view::npos) return Range{*first, *first};
  const auto last = parse_integer(what, word.substr(dots + 2), lowest, highest);
  if (!last) return last.error();
  if (*last < *first) {
    return Error{ErrorKind::usage, fmt::format("{} is {}; a range goes from its smaller number to "
                                               "its larger one",
                                               what, in_quotes(word))};
  }
  return Range{*first, *last};
}

}  // namespace

Result<std::vector<std::int64_t>> parse_integer_list(std::string_view what, std::string_view text,
                                                     std::int64_t lowest, std::int64_t highest,
                                                     std::size_t most) {
  std::vector<std::int64_t> numbers;
  std::string_view rest = text;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const Result<Range> range = parse_range(what, rest.substr(0, comma), lowest, highest);
    if (!range) return range.error();
    const auto count = static_cast<std::size_t>(range->last - range->first) + 1;
    if (count > most - numbers.size()) {
      return Error{ErrorKind::usage, fmt::format("{} is {}; at most {} numbers are accepted", what,
                                                 in_quotes(text), most)};
    }
    for (std::int64_t number = range->first; number <= range->last; ++number) {
      numbers.push_back(number);
    }
    if (comma == rest.size()) return numbers;
    rest.remove_prefix(comma + 1);
  }
}

Result<std::vector<std::int64_t>> integer_list_option(const ParsedOptions& options,
                                                      std::string_view name, std::int64_t lowest,
                                                      std::int64_t highest, std::size_t most) {
  const std::optional<std::string> text = options.value(name);
  if (!text) return std::vector<std::int64_t>{};
  return parse_integer_list(name, *text, lowest, highest, most);
}

}  // namespace kvsim
