// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "cli/printable.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

constexpr std::array global_option_rows{
    OptionSpec{"--json", "", "print one JSON object (see docs/schema)"},
    OptionSpec{"--markdown", "", "print Markdown tables"},
    OptionSpec{"--output", "FILE",
               "write the answer to FILE, whole or not at all (default -: standard output)"},
    OptionSpec{"--quiet", "", "nothing on standard error but errors"},
    OptionSpec{
        "--progress", "",
        "progress on standard error from the start, also where that is no terminal (default: on a "
        "terminal, once it takes over a second)"},
    OptionSpec{"--help", "", "print this text"},
    OptionSpec{"--version", "", "print the version"},
};

const OptionSpec* find_option(std::span<const OptionSpec> options, std::string_view name) {
  for (const std::span<const OptionSpec> table : {options, global_options()}) {
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const OptionSpec& option) { return option.name == name; });
    if (row != table.end()) return &*row;
  }
  return nullptr;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return text.size() >= lower_prefix.size() &&
         std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(),
                    [&](char prefix, char c) { return prefix == lower(c); });
}

bool is_negative_number(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  const std::string_view rest = argument.substr(1);
  return (rest[0] >= '0' && rest[0] <= '9') || rest[0] == '.' ||
         starts_with_ignoring_case(rest, "inf") || starts_with_ignoring_case(rest, "nan");
}

// CLI11 takes -inf for a bundle of short options. A leading blank makes it a plain argument; it
// is taken off again when the results are read.
constexpr char number_mark = ' ';

std::string unmark(std::string text) {
  if (text.size() > 1 && text[0] == number_mark && text[1] == '-') text.erase(0, 1);
  return text;
}

Error unknown_option(std::string_view argument, std::span<const OptionSpec> options) {
  const std::string_view name = argument.substr(0, argument.find('='));
  std::vector<std::string_view> names;
  for (const OptionSpec& option : options) names.push_back(option.name);
  for (const OptionSpec& option : global_options()) names.push_back(option.name);
  const std::string_view near = softfloat::nearest(name, names);
  if (!near.empty()) {
    return {ErrorKind::usage,
            fmt::format("unknown option {}; did you mean {}?", in_quotes(name), near)};
  }
  return {ErrorKind::usage,
          fmt::format("unknown option {}; accepted are {}", in_quotes(name), join_words(names))};
}

// Splits `--opt=value` and marks negative numbers. The errors are those that CLI11 would accept
// silently: a flag with a value, an option's name where a value is due, a repeated option.
Result<std::vector<std::string>> normalise(std::span<const OptionSpec> options,
                                           const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  std::vector<std::string_view> seen;
  bool only_positionals = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_positionals || is_negative_number(argument) || !argument.starts_with("--")) {
      out.push_back(is_negative_number(argument) ? number_mark + argument : argument);
      continue;
    }
    if (argument == "--") {
      only_positionals = true;
      out.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const OptionSpec* option = find_option(options, argument.substr(0, equals));
    if (option == nullptr) return unknown_option(argument, options);
    const bool is_flag = option->value_name.empty();
    const bool repeated = std::find(seen.begin(), seen.end(), option->name) != seen.end();
    if (repeated && !is_flag && !option->repeatable) {
      return Error{ErrorKind::usage,
                   fmt::format("{} is given twice; once is accepted", option->name)};
    }
    seen.push_back(option->name);
    if (is_flag) {
      if (equals != std::string::npos) {
        return Error{ErrorKind::usage,
                     fmt::format("{} is given the value {}; it takes none", option->name,
                                 in_quotes(std::string_view(argument).substr(equals + 1)))};
      }
      out.emplace_back(option->name);
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      value = arguments[++i];
    } else {
      return Error{ErrorKind::usage, fmt::format("{} has no value; {} {} is accepted", option->name,
                                                 option->name, option->value_name)};
    }
    out.emplace_back(option->name);
    out.push_back(value);
  }
  return out;
}

}  // namespace

std::span<const OptionSpec> global_options() { return global_option_rows; }

std::vector<OptionSpec> joined_rows(std::span<const std::span<const OptionSpec>> tables) {
  std::vector<OptionSpec> all;
  std::size_t count = 0;
  for (const auto& table : tables) count += table.size();
  all.reserve(count);
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

ParsedOptions ParsedOptions::with_defaults(const ParsedOptions& others) const {
  ParsedOptions both = *this;
  both.given_.insert(others.given_.begin(), others.given_.end());
  return both;
}

bool ParsedOptions::has(std::string_view name) const { return given_.find(name) != given_.end(); }

std::optional<std::string> ParsedOptions::value(std::string_view name) const {
  const auto found = given_.find(name);
  if (found == given_.end()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> ParsedOptions::values(std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>{} : found->second;
}

Result<ParsedOptions> parse_options(std::span<const OptionSpec> options,
                                    const std::vector<std::string>& arguments) {
  Result<std::vector<std::string>> normal = normalise(options, arguments);
  if (!normal) return normal.error();
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::string> flags;
  for (const std::span<const OptionSpec> table : {options, global_options()}) {
    for (const OptionSpec& option : table) {
      const std::string name(option.name);
      if (option.value_name.empty()) {
        app.add_flag(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      } else {
        app.add_option(name)
            ->expected(1, CLI::detail::expected_max_vector_size)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      }
    }
  }
  std::vector<std::string> reversed(normal->rbegin(), normal->rend());  // what CLI11 wants
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return Error{ErrorKind::usage, printable(error.what(), 200)};
  }
  ParsedOptions parsed;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    std::vector<std::string> values;
    for (const std::string& value : option->results()) values.push_back(unmark(value));
    parsed.given_.emplace(option->get_name(), std::move(values));
  }
  bool only_positionals = false;
  for (std::string argument : app.remaining()) {
    if (!only_positionals && argument == "--") {
      only_positionals = true;
      continue;
    }
    if (!only_positionals && argument.size() > 1 && argument[0] == '-') {
      return unknown_option(argument, options);
    }
    parsed.positionals_.push_back(unmark(std::move(argument)));
  }
  return parsed;
}

Result<std::int64_t> parse_integer(std::string_view what, std::string_view text,
                                   std::int64_t lowest, std::int64_t highest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    return Error{ErrorKind::usage, fmt::format("{} is {}; an integer from {} to {} is accepted",
                                               what, in_quotes(text), lowest, highest)};
  }
  return value;
}

Result<std::int64_t> integer_option(const ParsedOptions& options, std::string_view name,
                                    std::int64_t fallback, std::int64_t lowest,
                                    std::int64_t highest) {
  const std::optional<std::string> text = options.value(name);
  if (!text) return fallback;
  return parse_integer(name, *text, lowest, highest);
}

Error unknown_word(std::string_view what, std::string_view text,
                   std::span<const std::string_view> accepted) {
  const std::string_view near = softfloat::nearest(text, accepted);
  std::string message =
      fmt::format("{} is {}; accepted are {}", what, in_quotes(text), join_words(accepted));
  if (!near.empty()) message += fmt::format("; did you mean {}?", near);
  return {ErrorKind::usage, std::move(message)};
}

std::string join_words(std::span<const std::string_view> words, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    out += words[i];
  }
  return out;
}

}  // namespace kvsim
