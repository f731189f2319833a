// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "model/mapped_file.h"
#include "model/safetensors_header.h"
#include "softfloat/result.h"

namespace kvsim {

/// A safetensors file, mapped and fully checked. Movable; the spans of its tensors stay valid when
/// it is moved. Format: https://github.com/huggingface/safetensors, README, "Format".
class SafetensorsFile {
 public:
  /// Maps and checks a file. Errors (ErrorKind::file) name the path, the tensor, the value and what
  /// is accepted. Memory: the file's size plus the constant of SafetensorsLimits.
  [[nodiscard]] static Result<SafetensorsFile> open(const std::string& path);

  /// The same for bytes in memory, which must outlive the result. `source` names them in errors.
  [[nodiscard]] static Result<SafetensorsFile> parse(std::span<const std::byte> bytes,
                                                     std::string_view source = "safetensors");

  /// The path, or the `source` of parse().
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Every tensor, in the order of the data.
  [[nodiscard]] std::span<const Tensor> tensors() const { return content_.tensors; }
  /// The tensor of that name; nullptr if there is none.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
  /// The entries of `__metadata__`, in the order of the header.
  [[nodiscard]] std::span<const MetadataEntry> metadata() const { return content_.metadata; }

 private:
  SafetensorsFile(std::string path, MappedFile mapping, SafetensorsContent content);

  std::string path_;
  MappedFile mapping_;
  SafetensorsContent content_;
};

}  // namespace kvsim
