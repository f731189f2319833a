// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "softfloat/result.h"

namespace kvsim {

/// A regular file mapped read-only into memory, unmapped on destruction. The pages are the
/// system's file cache: they count at most the file's size and are read only when touched. The
/// file must not be shortened by another program while it is open, as for any mapping.
class MappedFile {
 public:
  /// No file: bytes() is empty.
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Maps the file. Error (ErrorKind::file) for a path that does not exist or cannot be read, and
  /// for a directory, a pipe, a device, a socket or an empty file; it never blocks on a pipe.
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);

  /// The content; valid as long as this object or what it was moved into lives.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace kvsim
