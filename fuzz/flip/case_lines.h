// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "softfloat/result.h"

/// What all texts of cases share: lines of words.
namespace kvsim::fuzz {

inline constexpr std::string_view first_case_line = "kvsim flip case 1";

/// Cuts the first word off the words of a line; empty where there is none.
[[nodiscard]] std::string_view next_word(std::string_view& rest);

/// The line that only shrunk cases have, "floor 0x1p-3"; nothing where it is 0.
[[nodiscard]] std::string floor_line(double floor);

/// The lines of a case, one after the other, comments and empty lines left out.
class CaseLines {
 public:
  explicit CaseLines(std::string_view text) : rest_(text) {}

  [[nodiscard]] std::optional<std::string_view> next();
  /// Whether the next line begins with that word; it stays the next one.
  [[nodiscard]] bool next_is(std::string_view word) const;
  /// The rest of the next line, which must begin with this word.
  [[nodiscard]] Result<std::string_view> value_of(std::string_view key);

  /// Reads the line of floor_line() where it comes next; leaves `floor` as it is otherwise.
  [[nodiscard]] Result<bool> read_floor(double& floor);

  /// Errors (file) that name the line.
  [[nodiscard]] Error wrong(std::string_view found, std::string_view accepted) const;
  [[nodiscard]] Error ends(std::string_view accepted) const;
  /// The same failure, with the line in front.
  [[nodiscard]] Error here(const Error& error) const;

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

}  // namespace kvsim::fuzz
