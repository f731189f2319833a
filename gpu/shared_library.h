// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <utility>

#include "softfloat/result.h"

namespace kvsim::gpu {

/// A shared library that was loaded while the program runs. Its symbols are its own: two libraries
/// that define the same names live side by side. It stays loaded until the program ends, because
/// libraries of this kind keep threads of their own.
class SharedLibrary {
 public:
  /// Loads the first of the candidates that can be loaded: paths, or names that the system looks
  /// for. Error (unavailable): none can; the message is one line with the last candidate's reason.
  [[nodiscard]] static Result<SharedLibrary> open(std::span<const std::string> candidates);

  /// The function of that name; null if the library has none.
  template <class Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  /// The candidate that was loaded.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  [[nodiscard]] void* symbol(const char* name) const;

  std::string path_;
  void* handle_;
};

}  // namespace kvsim::gpu
