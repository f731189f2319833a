// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/printable.h"
#include "cli/sink.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

ExitCode fail(std::string_view command, const Error& error) {
  write_error_line(command.empty() ? fmt::format("kvsim: {}", error.message)
                                   : fmt::format("kvsim {}: {}", command, error.message));
  return exit_code(error.kind);
}

std::string version_text() {
  return fmt::format("kvsim {}\ncommit: {}\ncompiler: {}\nflags: {}\n", build_info::version(),
                     build_info::commit(), build_info::compiler(), build_info::flags());
}

ExitCode print(std::string_view command, std::string_view text) {
  const Result<std::monostate> written = write_standard_output(text);
  return written ? ExitCode::done : fail(command, written.error());
}

// Where the command's name stands: the first argument that is no option. --output takes the
// argument behind it.
std::size_t command_position(std::span<const std::string> arguments) {
  std::size_t i = 0;
  while (i < arguments.size() && arguments[i].starts_with("-") && arguments[i] != "--") {
    i += arguments[i] == "--output" ? 2 : 1;
  }
  return i;
}

Error no_command() {
  std::vector<std::string_view> names;
  for (const Command* command : commands()) names.push_back(command->name);
  return {ErrorKind::usage,
          fmt::format("no command; accepted are {}; `kvsim --help` tells more", join_words(names))};
}

Result<const Command*> find_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command* command : commands()) {
    if (command->name == name) return command;
    names.push_back(command->name);
  }
  const std::string_view near = softfloat::nearest(name, names);
  std::string message =
      fmt::format("unknown command {}; accepted are {}", in_quotes(name), join_words(names));
  if (!near.empty()) message += fmt::format("; did you mean {}?", near);
  return Error{ErrorKind::usage, std::move(message)};
}

ExitCode run_without_command(std::span<const std::string> arguments) {
  const std::vector<std::string> all(arguments.begin(), arguments.end());
  const Result<ParsedOptions> parsed = parse_options({}, all);
  if (!parsed) return fail("", parsed.error());
  if (parsed->has("--help")) return print("", program_help());
  if (parsed->has("--version")) return print("", version_text());
  return fail("", no_command());
}

ExitCode carry_out(const Command& command, const std::vector<std::string>& arguments) {
  const Result<ParsedOptions> parsed = parse_options(command.options, arguments);
  if (!parsed) return fail(command.name, parsed.error());
  if (parsed->has("--help")) return print(command.name, command_help(command));
  if (parsed->has("--version")) return print(command.name, version_text());
  if (parsed->has("--json") && parsed->has("--markdown")) {
    return fail(command.name, {ErrorKind::usage,
                               "--json and --markdown are both given; one of them is accepted"});
  }
  const Result<Answer> answer = command.run(*parsed);
  if (!answer) return fail(command.name, answer.error());
  const OutputForm form = parsed->has("--json")       ? OutputForm::json
                          : parsed->has("--markdown") ? OutputForm::markdown
                                                      : OutputForm::text;
  const std::string text = render(answer->report, form);
  const std::string path = parsed->value("--output").value_or("-");
  const Result<std::monostate> written =
      path == "-" ? write_standard_output(text) : write_output_file(path, text);
  if (!written) return fail(command.name, written.error());
  if (answer->exit_code != ExitCode::done) {
    write_error_line(fmt::format("kvsim {}: {}", command.name, answer->complaint));
  }
  return answer->exit_code;
}

}  // namespace

ExitCode run_program(std::span<const std::string> arguments) {
  try {
    const std::size_t position = command_position(arguments);
    if (position >= arguments.size()) return run_without_command(arguments);
    const Result<const Command*> command = find_command(arguments[position]);
    if (!command) return fail("", command.error());
    std::vector<std::string> rest(arguments.begin(), arguments.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(position));
    return carry_out(**command, rest);
  } catch (const std::exception& error) {  // out of memory, mostly
    return fail("", {ErrorKind::file, printable(error.what())});
  }
}

}  // namespace kvsim
