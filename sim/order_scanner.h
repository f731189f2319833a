// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/order_names.h"
#include "softfloat/result.h"
#include "softfloat/suggest.h"

namespace kvsim {

/// The text of an order, read from left to right: words, numbers and single characters. A step that
/// finds something else stores one error, which names the position, what stands there and what is
/// accepted, and returns false.
class OrderScanner {
 public:
  explicit OrderScanner(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] bool at_end() const { return position_ >= text_.size(); }
  [[nodiscard]] bool at(char c) const { return !at_end() && text_[position_] == c; }
  [[nodiscard]] bool at_digit() const { return !at_end() && is_digit(text_[position_]); }
  [[nodiscard]] const Error& error() const { return error_; }

  void skip_blanks() {
    while (!at_end() && is_blank(text_[position_])) ++position_;
  }

  /// Steps over the character if it stands here.
  bool take(char c) {
    if (!at(c)) return false;
    ++position_;
    return true;
  }

  /// Steps over digits. The number, or nullopt where none fits or a word goes on behind it.
  std::optional<std::int64_t> take_number() {
    const char* const begin = text_.data() + position_;
    while (at_digit()) ++position_;
    std::int64_t number = 0;
    const bool read = std::from_chars(begin, text_.data() + position_, number).ec == std::errc{};
    if (!read || (!at_end() && is_word(text_[position_]))) return std::nullopt;
    return number;
  }

  /// Steps over the word that stands here; it may be empty.
  std::string_view take_word() {
    const std::string_view word = word_at(position_);
    position_ += word.size();
    return word;
  }

  /// One of `names`, as its index.
  bool take_name(std::span<const std::string_view> names, std::size_t& index) {
    const std::string_view word = word_at(position_);
    for (index = 0; index < names.size(); ++index) {
      if (names[index] == word) {
        position_ += word.size();
        return true;
      }
    }
    std::string accepted = fmt::format("{}", fmt::join(names, ", "));
    const std::string_view near = softfloat::nearest(word, names);
    if (!near.empty()) accepted += fmt::format(" (did you mean {}?)", near);
    return fail(accepted);
  }

  /// Everything up to the ')' that closes the list we stand in, without blanks at its ends; the
  /// ')' stays. The end of the text where there is none.
  std::string_view take_list() {
    const std::size_t start = position_;
    for (int depth = 0; !at_end() && (depth > 0 || !at(')')); ++position_) {
      if (at('(')) ++depth;
      if (at(')')) --depth;
    }
    std::string_view list = text_.substr(start, position_ - start);
    while (!list.empty() && is_blank(list.back())) list.remove_suffix(1);
    return list;
  }

  bool fail(const std::string& accepted) { return fail_at(position_, accepted); }
  bool fail_at(std::size_t start, const std::string& accepted) {
    return fail_with(start, fmt::format("found {}; accepted: {}", found(start), accepted));
  }
  bool fail_with(std::size_t start, std::string_view message) {
    error_ = Error{ErrorKind::usage, fmt::format("order position {}: {}", start + 1, message)};
    return false;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  [[nodiscard]] std::string_view word_at(std::size_t start) const {
    std::size_t end = start;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(start, end - start);
  }

  /// What stands at a position, as an error message shows it.
  [[nodiscard]] std::string found(std::size_t start) const {
    if (start >= text_.size()) return "the end";
    std::string_view word = word_at(start);
    if (word.empty()) word = text_.substr(start, 1);
    return order_names::quoted(word);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  Error error_;
};

}  // namespace kvsim
