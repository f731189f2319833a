// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim {

/// One value of a record line with the path that leads to it ("top[3].logit"). Reads its own fields
/// and keeps the first problem of the whole line: after one, everything reads as nothing.
class RecordField {
 public:
  /// `problem` must outlive this object and what is read from it.
  RecordField(const nlohmann::json* value, std::string path, std::string* problem)
      : value_(value), path_(std::move(path)), problem_(problem) {}

  /// An object of exactly these keys; false otherwise.
  [[nodiscard]] bool is_object_of(std::initializer_list<std::string_view> keys) const;
  /// The field under a key that is_object_of() has seen.
  [[nodiscard]] RecordField at(std::string_view key) const;

  [[nodiscard]] std::int64_t whole_number(std::int64_t smallest = 0) const;
  [[nodiscard]] std::uint64_t unsigned_number() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_null() const;
  /// The elements of an array of at most so many.
  [[nodiscard]] std::vector<RecordField> elements(std::size_t most) const;
  [[nodiscard]] std::vector<std::string> texts(std::size_t most) const;

  /// Keeps "PATH: VALUE; accepted: …" as the problem where there is none yet.
  void refuse(std::string_view accepted) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
  std::string* problem_;
};

/// The object in `line` with its decimal numbers as binary64, read without regard to the locale;
/// otherwise null, and `problem` says why.
[[nodiscard]] nlohmann::json read_record_object(std::string_view line, std::string& problem);

}  // namespace kvsim
