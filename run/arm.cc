// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "model/quote.h"
#include "run/constructors.h"
#include "softfloat/mutants.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

constexpr std::size_t largest_text = 4096;
constexpr std::size_t largest_label = 64;
constexpr std::size_t largest_key = 64;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool all_of_class(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || more.find(c) != std::string_view::npos;
  });
}

/// One arm's text, with the errors that name it.
class ArmText {
 public:
  explicit ArmText(std::string_view text) : text_(text) {}

  Result<Arm> parse();

 private:
  [[nodiscard]] Error fail(std::string_view problem) const {
    return {ErrorKind::usage, fmt::format("arm {}: {}", quote(text_), problem)};
  }
  /// The position of `wanted` outside parentheses, from `start`; npos where there is none.
  [[nodiscard]] std::size_t find_outside(char wanted, std::size_t start) const;
  [[nodiscard]] std::optional<Error> check_characters() const;
  [[nodiscard]] std::optional<Error> read_constructor(std::string_view text, Arm& arm) const;
  [[nodiscard]] std::optional<Error> read_settings(std::size_t start, std::size_t end,
                                                   Arm& arm) const;
  [[nodiscard]] std::optional<Error> read_setting(std::string_view text, Arm& arm) const;

  std::string_view text_;
};

std::size_t ArmText::find_outside(char wanted, std::size_t start) const {
  int depth = 0;
  for (std::size_t at = start; at < text_.size(); ++at) {
    if (depth == 0 && text_[at] == wanted) return at;
    if (text_[at] == '(') ++depth;
    if (text_[at] == ')') --depth;
  }
  return std::string_view::npos;
}

std::optional<Error> ArmText::check_characters() const {
  if (text_.size() > largest_text) {
    return fail(fmt::format("{} bytes; accepted: at most {}", text_.size(), largest_text));
  }
  int depth = 0;
  for (std::size_t at = 0; at < text_.size(); ++at) {
    if (text_[at] <= ' ' || text_[at] > '~') {
      return fail(fmt::format("{} at position {}; accepted: printable ASCII without blanks",
                              quote(text_.substr(at, 1)), at + 1));
    }
    if (text_[at] == '(') ++depth;
    if (text_[at] == ')' && --depth < 0) {
      return fail(fmt::format("\")\" at position {} closes nothing; accepted: balanced parentheses",
                              at + 1));
    }
  }
  if (depth > 0) return fail("a \"(\" is never closed; accepted: balanced parentheses");
  return std::nullopt;
}

std::optional<Error> ArmText::read_constructor(std::string_view text, Arm& arm) const {
  const std::size_t open = text.find('(');
  const std::string_view name = text.substr(0, open);
  const ConstructorRow* row = find_constructor(name);
  if (row == nullptr) {
    const std::string_view near = softfloat::nearest(name, constructor_names());
    return fail(fmt::format("constructor {}; accepted: {}{}", quote(name), constructor_forms(),
                            near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
  }
  const auto wrong = [&] {
    return fail(fmt::format("constructor {}; accepted: {}, whole numbers from 1 to {}", quote(text),
                            row->form, largest_parameter));
  };
  arm.constructor = row->constructor;
  if (open == std::string_view::npos)
    return row->parameters == 0 ? std::nullopt : std::optional(wrong());
  if (row->parameters == 0) {
    return fail(
        fmt::format("constructor {}; accepted: {} without parentheses", quote(text), row->form));
  }
  std::array<std::int64_t*, 2> targets{&arm.rows, &arm.block};
  const char* at = text.data() + open + 1;
  const char* const end = text.data() + text.size();
  for (int index = 0; index < row->parameters; ++index) {
    std::int64_t& target = *targets.at(static_cast<std::size_t>(index));
    const auto [next, error] = std::from_chars(at, end, target);
    const char closing = index + 1 == row->parameters ? ')' : ',';
    if (error != std::errc() || next == end || *next != closing || target < 1 ||
        target > largest_parameter) {
      return wrong();
    }
    at = next + 1;
  }
  return at == end ? std::nullopt : std::optional(wrong());
}

std::optional<Error> ArmText::read_setting(std::string_view text, Arm& arm) const {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    return fail(fmt::format("setting {}; accepted: KEY=VALUE", quote(text)));
  }
  if (key.empty() || key.size() > largest_key || !all_of_class(key, ".-_")) {
    return fail(fmt::format("key {}; accepted: 1 to {} letters, digits, '.', '-', '_'", quote(key),
                            largest_key));
  }
  for (const ArmSetting& setting : arm.settings) {
    if (setting.key == key) {
      return fail(fmt::format("key {} stands twice; accepted: each key once", quote(key)));
    }
  }
  arm.settings.push_back({std::string(key), std::string(text.substr(equals + 1))});
  return std::nullopt;
}

std::optional<Error> ArmText::read_settings(std::size_t start, std::size_t end, Arm& arm) const {
  while (true) {
    const std::size_t comma = std::min(find_outside(',', start), end);
    if (auto error = read_setting(text_.substr(start, comma - start), arm)) return error;
    if (comma == end) return std::nullopt;
    start = comma + 1;
  }
}

Result<Arm> ArmText::parse() {
  if (const auto error = check_characters()) return *error;
  Arm arm;
  const std::size_t label = std::min(find_outside('@', 0), text_.size());
  const std::size_t colon = std::min(find_outside(':', 0), label);
  if (const auto error = read_constructor(text_.substr(0, colon), arm)) return *error;
  if (colon < label) {
    if (const auto error = read_settings(colon + 1, label, arm)) return *error;
  }
  std::sort(arm.settings.begin(), arm.settings.end(),
            [](const ArmSetting& a, const ArmSetting& b) { return a.key < b.key; });
  arm.label = to_text(arm);
  if (label < text_.size()) {
    const std::string_view given = text_.substr(label + 1);
    if (given.empty() || given.size() > largest_label || !all_of_class(given, ".-_+")) {
      return fail(fmt::format("label {}; accepted: 1 to {} letters, digits, '.', '-', '_', '+'",
                              quote(given), largest_label));
    }
    arm.label = given;
  }
  return arm;
}

}  // namespace

Result<Arm> parse_arm(std::string_view text) { return ArmText(text).parse(); }

std::string to_text(const Arm& arm) {
  const ConstructorRow& row = constructor_row(arm.constructor);
  std::string text(row.name);
  if (row.parameters == 1) text += fmt::format("({})", arm.rows);
  if (row.parameters == 2) text += fmt::format("({},{})", arm.rows, arm.block);
  char separator = ':';
  for (const ArmSetting& setting : arm.settings) {
    text += fmt::format("{}{}={}", separator, setting.key, setting.value);
    separator = ',';
  }
  return text;
}

std::string to_text_with_label(const Arm& arm) {
  std::string text = to_text(arm);
  if (arm.label != text && !mutant_is_on(Mutant::label_lost)) text += "@" + arm.label;
  return text;
}

}  // namespace kvsim
