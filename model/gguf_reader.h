// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "softfloat/result.h"

namespace kvsim {

static_assert(std::endian::native == std::endian::little, "values are copied as they stand");

/// Reads the head of a GGUF file from front to back. The first failure is kept and stops everything
/// that follows; every member that reads returns false after it.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, std::string_view source)
      : bytes_(bytes), source_(source) {}

  /// The first failure, once a call has returned false.
  [[nodiscard]] Error error() const { return error_.value_or(Error{}); }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - at_; }
  /// Bytes from the beginning of the file.
  [[nodiscard]] std::size_t at() const { return at_; }
  void set_place(std::string place) { place_ = std::move(place); }

  bool refuse(std::string_view problem) {
    if (!error_) {
      error_ = Error{ErrorKind::file, fmt::format("{}: {}: {}", source_, place_, problem)};
    }
    return false;
  }

  bool take(std::uint64_t count, std::span<const std::byte>& part) {
    if (error_) return false;
    if (count > left()) {
      return refuse(
          fmt::format("needs {} bytes and {} follow; accepted: a whole file", count, left()));
    }
    part = bytes_.subspan(at_, count);
    at_ += count;
    return true;
  }

  template <class T>
  bool number(T& value) {
    std::span<const std::byte> part;
    if (!take(sizeof(T), part)) return false;
    std::memcpy(&value, part.data(), sizeof(T));
    return true;
  }

  bool text(std::string_view& value, std::uint64_t limit) {
    std::uint64_t length = 0;
    if (!number(length)) return false;
    if (length > limit) {
      return refuse(fmt::format("a text of {} bytes; accepted: at most {}", length, limit));
    }
    std::span<const std::byte> part;
    if (!take(length, part)) return false;
    value = {reinterpret_cast<const char*>(part.data()), part.size()};
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view source_;
  std::string place_ = "the GGUF header";
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace kvsim
