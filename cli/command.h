// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string_view>

#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/output.h"
#include "softfloat/result.h"

namespace kvsim {

/// What a command hands back: the report, and whether a check that it was asked for failed.
struct Answer {
  Report report;
  ExitCode exit_code = ExitCode::done;
  std::string complaint;  ///< the line for standard error when exit_code is not done
};

/// One command of the program: a row of the table in commands.cc, a file command_NAME.cc.
struct Command {
  std::string_view name;
  std::string_view summary;             ///< one line for `kvsim --help`
  std::string_view synopsis;            ///< what follows "kvsim NAME "
  std::string_view description;         ///< paragraphs for --help, each line at most 100 columns
  std::span<const OptionSpec> options;  ///< without the global ones
  std::string_view examples;            ///< two command lines, each indented by two blanks
  /// Does the work. Prints nothing on standard output.
  Result<Answer> (*run)(const ParsedOptions& options);
};

extern const Command crosscheck_command;
extern const Command diff_command;
extern const Command eval_command;
extern const Command experiment_command;
extern const Command fetch_command;
extern const Command formats_command;
extern const Command fuzz_command;
extern const Command import_command;
extern const Command kernels_command;
extern const Command merge_command;
extern const Command predict_command;
extern const Command probe_command;
extern const Command replay_command;
extern const Command report_command;
extern const Command reveal_command;
extern const Command run_command;

/// Every command, in the order of `kvsim --help`.
[[nodiscard]] std::span<const Command* const> commands();

/// The text of `kvsim --help`.
[[nodiscard]] std::string program_help();

/// The text of `kvsim NAME --help`.
[[nodiscard]] std::string command_help(const Command& command);

/// Parses, runs and prints: the whole program but for the signal handlers.
[[nodiscard]] ExitCode run_program(std::span<const std::string> arguments);

}  // namespace kvsim
