// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/property.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvsim::gpu {

Seen seen_number(int number) { return {.kind = Seen::Kind::number, .number = number}; }

Seen seen_word(std::string_view word) {
  return {.kind = Seen::Kind::word, .word = std::string(word)};
}

std::string to_string(const Seen& seen) {
  switch (seen.kind) {
    case Seen::Kind::number:
      return fmt::format("{}", seen.number);
    case Seen::Kind::at_least:
      return fmt::format("at least {}", seen.number);
    case Seen::Kind::at_most:
      return fmt::format("at most {}", seen.number);
    case Seen::Kind::no_limit:
      return "no limit";
    case Seen::Kind::word:
      return seen.word;
    case Seen::Kind::not_visible:
      break;
  }
  return "not visible";
}

Seen find_property(const Properties& properties, std::string_view name) {
  const auto found = std::ranges::find(properties, name, &Property::name);
  return found == properties.end() ? Seen{} : found->seen;
}

std::optional<bool> agrees(const Seen& seen, const Seen& declared) {
  using Kind = Seen::Kind;
  if (seen.kind == Kind::not_visible || declared.kind == Kind::not_visible) return std::nullopt;
  const bool unlimited = declared.kind == Kind::no_limit;
  const bool number = declared.kind == Kind::number;
  if (seen.kind == Kind::at_least) return unlimited || (number && declared.number >= seen.number);
  if (seen.kind == Kind::at_most) return unlimited || (number && declared.number <= seen.number);
  return seen == declared;
}

}  // namespace kvsim::gpu
