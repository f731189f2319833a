// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "softfloat/result.h"

namespace kvsim {

/// Every exit status of the program; docs/exit-codes.md is the table for users.
enum class ExitCode : int {
  done = 0,           ///< the answer is on standard output
  check_failed = 1,   ///< a command that checks found a difference
  usage = 2,          ///< a command, option, number, name or shape that is not accepted
  file = 3,           ///< a file or the system: cannot read, cannot write, malformed
  cannot_tell = 4,    ///< the question has no answer from what was observed
  unavailable = 5,    ///< a back end or feature that is not available here
  interrupted = 130,  ///< Ctrl-C (128 + SIGINT)
};

/// The exit status for a kind of failure.
[[nodiscard]] constexpr ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return ExitCode::usage;
    case ErrorKind::file:
      return ExitCode::file;
    case ErrorKind::cannot_tell:
      return ExitCode::cannot_tell;
    case ErrorKind::unavailable:
      break;
  }
  return ExitCode::unavailable;
}

}  // namespace kvsim
