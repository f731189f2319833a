// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <chrono>
#include <string>

#include "cli/options.h"

namespace kvsim {

/// Tells on standard error how far a long command is: on a terminal one line that is overwritten,
/// nothing in the first second; with --progress from the start, and elsewhere too, at most one
/// whole line a second. Nothing at all under --quiet. The time that is left is estimated from the
/// share. Time decides only what is shown, never a result.
class Progress {
 public:
  Progress(std::string command, const ParsedOptions& options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes the line off the terminal again.
  ~Progress();

  /// The finished share, 0 … 1.
  void show(double share);

 private:
  using Clock = std::chrono::steady_clock;
  std::string command_;
  bool is_terminal_;
  bool is_shown_;
  bool has_line_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace kvsim
