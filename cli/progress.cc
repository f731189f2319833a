// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/sink.h"

namespace kvsim {

Progress::Progress(std::string command, const ParsedOptions& options)
    : command_(std::move(command)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      is_shown_(!options.has("--quiet") && (is_terminal_ || options.has("--progress"))),
      start_(Clock::now()),
      next_(start_ + std::chrono::seconds(options.has("--progress") ? 0 : 1)) {}

Progress::~Progress() {
  if (has_line_) write_error("\r\x1b[K");
}

void Progress::show(double share) {
  const Clock::time_point now = Clock::now();
  if (!is_shown_ || now < next_ || share >= 1) return;
  next_ = now + (is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(1000));
  const double passed = std::chrono::duration<double>(now - start_).count();
  // Before a hundredth is done there is nothing to estimate from.
  const std::string left = share < 0.01
                               ? std::string()
                               : fmt::format("about {:.0f} s left, ", passed * (1 - share) / share);
  const std::string text = fmt::format("kvsim {}: {}{:.0f} %", command_, left, 100 * share);
  if (is_terminal_) {
    write_error("\r\x1b[K" + text);
    has_line_ = true;
  } else {
    write_error_line(text);
  }
}

}  // namespace kvsim
