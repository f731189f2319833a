// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "softfloat/result.h"

namespace kvsim {

/// Makes Ctrl-C (and SIGTERM) remove an unfinished --output file and end the program with 128 +
/// the signal's number, and makes a closed pipe an ordinary error instead of a signal. Call once,
/// before anything else.
void install_signal_handlers();

/// Writes the answer to standard output, whole lines at a time, so that an interrupted program
/// leaves whole lines behind. A closed pipe is success: the reader has what it wanted.
/// Errors (file): the device is full, standard output is not open.
[[nodiscard]] Result<std::monostate> write_standard_output(std::string_view text);

/// While it lives, Ctrl-C (and SIGTERM) also remove this folder and the files in it. One at a time.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(std::string_view folder);
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;
  ~UnfinishedFolder();
};

/// While it lives, Ctrl-C and SIGTERM wait: for a step that a handler must not find half done.
class SignalsWait {
 public:
  SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait();

 private:
  sigset_t before_{};
};

/// Writes `text` to a temporary file beside `path`, then renames it: the file is whole or
/// untouched. A symbolic link is followed; a path that is not a regular file (/dev/null, a pipe) is
/// written in place. The mode of an existing file is kept. Errors (file): one line with path and
/// reason.
[[nodiscard]] Result<std::monostate> write_output_file(const std::string& path,
                                                       std::string_view text);

/// Writes one line to standard error; failures are ignored, there is nobody left to tell.
void write_error_line(std::string_view line);

/// The same without the end of the line.
void write_error(std::string_view text);

/// What writes a command's lines to standard error, each behind "kvsim COMMAND: "; nothing when
/// `quiet`.
[[nodiscard]] std::function<void(std::string)> error_lines(std::string_view command, bool quiet);

}  // namespace kvsim
