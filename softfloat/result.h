// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace kvsim {

/// What kind of failure an Error reports. The command line turns each kind into one exit code
/// (docs/exit-codes.md); libraries never exit, print or throw.
enum class ErrorKind {
  usage,        ///< a flag, a number, a name or a shape that the caller gave: exit 2
  file,         ///< a file or the system: exit 3
  cannot_tell,  ///< the question has no answer from what was observed: exit 4
  unavailable,  ///< a back end or feature that is not available here: exit 5
};

/// One failure. `message` is one line that names the thing, the value and what is accepted.
struct Error {
  ErrorKind kind = ErrorKind::usage;
  std::string message;
};

/// A value or an Error: the shape of C++23's std::expected, until the compilers have it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` works
  Result(Error error)
      : state_(std::move(error)) {}  // NOLINT: implicit, so that `return Error{…};` works

  /// True when a value is held.
  [[nodiscard]] bool has_value() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return has_value(); }

  /// The value; calling it on an error is a defect of the caller.
  [[nodiscard]] T& value() & { return std::get<T>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<T>(state_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The error; calling it on a value is a defect of the caller.
  [[nodiscard]] const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace kvsim
