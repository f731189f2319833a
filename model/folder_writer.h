// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "softfloat/result.h"

namespace kvsim {

/// A folder that appears whole or not at all. Its files are written into "<target>.partial", which
/// takes the target's name at the end. While it is written it is locked; what a killed program left
/// under that name is not locked and is removed by the next one. Errors are ErrorKind::file, one
/// line that begins with the target.
class FolderWriter {
 public:
  FolderWriter() = default;
  FolderWriter(FolderWriter&& other) noexcept;
  FolderWriter& operator=(FolderWriter&& other) noexcept;
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;
  /// Removes everything unless finish() succeeded.
  ~FolderWriter();

  /// Error where something stands at `target`, its parent folder is missing or cannot be written,
  /// or another program is writing it.
  [[nodiscard]] static Result<FolderWriter> make(const std::string& target);

  /// Where the files are until finish().
  [[nodiscard]] const std::string& partial() const { return partial_; }

  /// A new file that write() continues; the one before is finished.
  [[nodiscard]] Result<bool> begin_file(std::string_view name);
  /// Appends to the file of begin_file().
  [[nodiscard]] Result<bool> write(std::span<const std::byte> bytes);
  /// begin_file() and write().
  [[nodiscard]] Result<bool> write_file(std::string_view name, std::string_view text);

  /// Brings everything to the disk and gives the folder its name.
  [[nodiscard]] Result<bool> finish();

 private:
  [[nodiscard]] Error error(std::string_view what, int error_number) const;
  [[nodiscard]] Result<bool> end_file();
  void remove();

  std::string target_;
  std::string partial_;
  int folder_ = -1;  ///< descriptor that holds the lock
  int file_ = -1;
};

}  // namespace kvsim
