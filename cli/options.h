// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// One option of a command: the row from which parsing, suggestions and --help are made.
struct OptionSpec {
  std::string_view name;        ///< with dashes: "--head-dim"
  std::string_view value_name;  ///< what stands for the value in --help: "N"; empty for a flag
  std::string_view help;        ///< what it does, with default, range and unit
  bool repeatable = false;      ///< may be given more than once
};

/// The options that every command has.
[[nodiscard]] std::span<const OptionSpec> global_options();

/// The rows of several tables as one.
[[nodiscard]] std::vector<OptionSpec> joined_rows(
    std::span<const std::span<const OptionSpec>> tables);

/// What stood on the command line of one command. Values are the texts as given.
class ParsedOptions {
 public:
  /// True when the option was given.
  [[nodiscard]] bool has(std::string_view name) const;
  /// The value of an option that is not repeatable; nothing when it was not given.
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const;
  /// All values of a repeatable option, in the order given.
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// The arguments that are neither options nor their values, in the order given.
  [[nodiscard]] const std::vector<std::string>& positionals() const { return positionals_; }
  /// These options, and of the others those that are not given here.
  [[nodiscard]] ParsedOptions with_defaults(const ParsedOptions& others) const;

 private:
  friend Result<ParsedOptions> parse_options(std::span<const OptionSpec> options,
                                             const std::vector<std::string>& arguments);
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> positionals_;
};

/// Parses the arguments that follow a command's name. `--opt value` equals `--opt=value`; an
/// argument such as -0.25, -.5, -inf or -nan is a number, not an option; everything after `--` is
/// positional. Errors (usage): an unknown option (with the near one), a value that is missing, a
/// value for a flag, a single-valued option given twice.
[[nodiscard]] Result<ParsedOptions> parse_options(std::span<const OptionSpec> options,
                                                  const std::vector<std::string>& arguments);

/// Reads an integer in decimal, lowest to highest, both included. The error names `what` (an
/// option or an operand), the text and the range.
[[nodiscard]] Result<std::int64_t> parse_integer(std::string_view what, std::string_view text,
                                                 std::int64_t lowest, std::int64_t highest);

/// The integer value of an option, or `fallback` when it was not given.
[[nodiscard]] Result<std::int64_t> integer_option(const ParsedOptions& options,
                                                  std::string_view name, std::int64_t fallback,
                                                  std::int64_t lowest, std::int64_t highest);

/// The error for a word that is not among those accepted, with the near one where there is one.
[[nodiscard]] Error unknown_word(std::string_view what, std::string_view text,
                                 std::span<const std::string_view> accepted);

/// "a, b and c".
[[nodiscard]] std::string join_words(std::span<const std::string_view> words,
                                     std::string_view last = "and");

}  // namespace kvsim
