// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "softfloat/result.h"

namespace kvsim::test {

/// A folder of its own for one test, removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvsim-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "cannot make " << name;
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// Little-endian, as the format has it.
inline std::string eight_bytes(std::uint64_t value) {
  std::string bytes;
  for (int index = 0; index < 8; ++index) bytes += static_cast<char>(value >> (8 * index));
  return bytes;
}

/// A safetensors file put together by hand, without the library's writer.
inline std::string safetensors(std::string_view header, std::string_view data = "") {
  return eight_bytes(header.size()) + std::string(header) + std::string(data);
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// One line without control bytes that says what is accepted.
inline void expect_one_line(const Error& error) {
  EXPECT_NE(error.message.find("accepted: "), std::string::npos) << error.message;
  EXPECT_LT(error.message.size(), 1000U) << error.message;
  for (const char character : error.message) {
    EXPECT_GE(static_cast<unsigned char>(character), 0x20U) << error.message;
    EXPECT_NE(character, '\x7f') << error.message;
  }
}

}  // namespace kvsim::test
