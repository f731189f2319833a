// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// Another program that runs beside this one: its standard input is a text, its standard output a
/// pipe, and what it says on standard error is kept for the message when it fails. It ends when
/// this program does. Errors are ErrorKind::file.
class ChildProcess {
 public:
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Ends the program if it still runs.
  ~ChildProcess();

  /// Starts arguments[0] with `environment` ("NAME=value") added to this program's own.
  [[nodiscard]] static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                                  std::string_view input = {},
                                                  const std::vector<std::string>& environment = {});

  /// Fills `bytes` with what comes next on its standard output. When that ends too early: the error
  /// of finish(), or one that says so.
  [[nodiscard]] Result<bool> read(std::span<std::byte> bytes);
  /// Up to bytes.size() bytes; 0 at the end.
  [[nodiscard]] Result<std::size_t> read_some(std::span<std::byte> bytes);
  /// Whether it still runs.
  [[nodiscard]] bool is_running();
  /// Waits for its end. A status that is not 0: the last line of its standard error.
  [[nodiscard]] Result<bool> finish();

 private:
  ChildProcess() = default;
  void wait_for_end(bool block);
  [[nodiscard]] std::string last_line() const;

  std::string name_;
  pid_t process_ = -1;  ///< -1 once it has ended
  int status_ = 0;
  int output_ = -1;
  int errors_ = -1;
};

}  // namespace kvsim
