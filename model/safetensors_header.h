// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "softfloat/result.h"

namespace kvsim {

/// What the reader accepts, apart from the rules of the format itself. The limits bound the memory
/// that any file can make it use: beside the mapped file itself, the names and texts it copies (no
/// more bytes than the header has) and less than 80 MiB of bookkeeping. As the header is at most
/// 100,000,000 bytes, that is the file's size plus at most 176 MiB.
struct SafetensorsLimits {
  /// The reference implementation's limit as well.
  static constexpr std::uint64_t header_bytes = 100'000'000;
  /// Bytes of one name or text, and between two of them, as written in the header.
  static constexpr std::size_t text_bytes = 1 << 20;
  static constexpr std::size_t tensors = 1 << 17;
  static constexpr std::size_t metadata_entries = 1 << 16;
  static constexpr std::size_t dimensions = 8;
};

/// One tensor: row-major, little-endian, elements narrower than a byte packed.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;   ///< empty for a scalar; every size is at least 0
  std::span<const std::byte> bytes;  ///< exactly the elements; any alignment
};

/// One entry of the file's `__metadata__`.
struct MetadataEntry {
  std::string key;
  std::string text;
};

/// What a header describes.
struct SafetensorsContent {
  std::vector<Tensor> tensors;          ///< in the order of their data
  std::vector<std::uint32_t> by_name;   ///< indices into `tensors`, sorted by name
  std::vector<MetadataEntry> metadata;  ///< in the order of the header
};

/// Reads a whole safetensors file from memory; the result's spans point into `file`. Everything is
/// checked: lengths, JSON without duplicate or unknown keys, dtypes, shapes whose size overflows,
/// and offsets that must cover the data without gap or overlap. `source` is how error messages name
/// the file. Errors are ErrorKind::file, one line each. Time is O(n log n) in the header's size.
[[nodiscard]] Result<SafetensorsContent> parse_safetensors(std::span<const std::byte> file,
                                                           std::string_view source);

/// Checks what stands before the data, for a writer: the same rules, except that nothing is known
/// of the data. Holds true, or an Error (ErrorKind::file) without a file's name.
[[nodiscard]] Result<bool> check_safetensors_header(std::span<const std::byte> prefix);

/// The number of bytes of a tensor, or an Error (ErrorKind::file, without the file's name) for a
/// shape with a negative size, more than SafetensorsLimits::dimensions of them, more than 2^63 - 1
/// bits, or a number of bits that fills no whole bytes.
[[nodiscard]] Result<std::int64_t> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape);

/// "[9, 256, 64]".
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace kvsim
