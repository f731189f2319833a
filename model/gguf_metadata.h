// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// What the reader accepts; it bounds the memory that any file can make it use: 16 bytes for each
/// text of an array, and an array of texts needs 8 bytes of file for each, so at most twice the
/// bytes of the key-values plus 64 bytes for each entry. Nothing else is copied.
struct GgufLimits {
  static constexpr std::uint64_t entries = 1 << 16;
  static constexpr std::uint64_t tensors = 1 << 20;
  static constexpr std::uint64_t key_bytes = 65535;      ///< the format's own limit
  static constexpr std::uint64_t text_bytes = 1 << 24;   ///< of one text
  static constexpr std::uint64_t array_items = 1 << 22;  ///< of one array
};

/// The types of a value, with the numbers that stand in the file (gguf.md of the ggml project).
enum class GgufType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  text,
  array,
  uint64,
  int64,
  float64,
};

/// The format's name of the type: "uint32", "string".
[[nodiscard]] std::string_view name_of(GgufType type);

/// An array of numbers or texts. Arrays in arrays are refused: no key of a model holds one.
struct GgufArray {
  GgufType item = GgufType::uint8;
  std::uint64_t size = 0;
  std::span<const std::byte> numbers;   ///< little-endian; empty for texts
  std::vector<std::string_view> texts;  ///< any bytes, not always UTF-8
};

using GgufValue =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, GgufArray>;

struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::uint8;
  GgufValue value;  ///< signed types as int64, unsigned as uint64, float32 as double
};

/// The key-values at the head of a GGUF file (versions 2 and 3, little-endian). Views lead into the
/// bytes that were parsed, which must outlive it. Errors are ErrorKind::file, one line that begins
/// with `source`.
class GgufMetadata {
 public:
  [[nodiscard]] static Result<GgufMetadata> parse(std::span<const std::byte> bytes,
                                                  std::string_view source);

  [[nodiscard]] std::span<const GgufEntry> entries() const { return entries_; }
  [[nodiscard]] std::uint64_t tensor_count() const { return tensor_count_; }
  /// Bytes from the beginning of the file to the end of the key-values.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Null if the file has no such key.
  [[nodiscard]] const GgufEntry* find(std::string_view key) const;

  /// The value under the key; nullopt if it is missing, an error if it has another type.
  [[nodiscard]] Result<std::optional<std::string_view>> text(std::string_view key) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view key) const;
  /// Any whole number that is at most 2^63 - 1.
  [[nodiscard]] Result<std::optional<std::int64_t>> whole(std::string_view key) const;
  /// A number of type float32.
  [[nodiscard]] Result<std::optional<float>> number(std::string_view key) const;
  /// Null if it is missing. `item` must be the type of the array's items.
  [[nodiscard]] Result<const GgufArray*> array(std::string_view key, GgufType item) const;

 private:
  [[nodiscard]] Error wrong_type(const GgufEntry& entry, std::string_view accepted) const;

  std::string source_;
  std::uint64_t tensor_count_ = 0;
  std::size_t bytes_ = 0;
  std::vector<GgufEntry> entries_;
};

}  // namespace kvsim
