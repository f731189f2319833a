// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_metadata.h"
#include "tests/model/test_file.h"

namespace kvsim::test {

inline std::string four_bytes(std::uint32_t value) {
  std::string bytes;
  for (int index = 0; index < 4; ++index) bytes += static_cast<char>(value >> (8 * index));
  return bytes;
}

/// A length and the bytes, as GGUF writes keys and texts.
inline std::string gguf_text(std::string_view text) {
  return eight_bytes(text.size()) + std::string(text);
}

/// A key, the number of its type, and the value's bytes.
inline std::string gguf_entry(std::string_view key, GgufType type, std::string_view value) {
  return gguf_text(key) + four_bytes(static_cast<std::uint32_t>(type)) + std::string(value);
}

inline std::string gguf_texts(std::string_view key, const std::vector<std::string>& texts) {
  std::string value = four_bytes(static_cast<std::uint32_t>(GgufType::text));
  value += eight_bytes(texts.size());
  for (const std::string& text : texts) value += gguf_text(text);
  return gguf_entry(key, GgufType::array, value);
}

inline std::string gguf_int32s(std::string_view key, const std::vector<std::int32_t>& numbers) {
  std::string value = four_bytes(static_cast<std::uint32_t>(GgufType::int32));
  value += eight_bytes(numbers.size());
  for (const std::int32_t number : numbers) value += four_bytes(static_cast<std::uint32_t>(number));
  return gguf_entry(key, GgufType::array, value);
}

inline std::string gguf_floats(std::string_view key, const std::vector<float>& numbers) {
  std::string value = four_bytes(static_cast<std::uint32_t>(GgufType::float32));
  value += eight_bytes(numbers.size());
  for (const float number : numbers) value += four_bytes(std::bit_cast<std::uint32_t>(number));
  return gguf_entry(key, GgufType::array, value);
}

/// A GGUF file of version 3 without tensors.
inline std::string gguf(const std::vector<std::string>& entries) {
  std::string bytes = "GGUF" + four_bytes(3) + eight_bytes(0) + eight_bytes(entries.size());
  for (const std::string& entry : entries) bytes += entry;
  return bytes;
}

}  // namespace kvsim::test
