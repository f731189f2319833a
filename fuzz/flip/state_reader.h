// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "softfloat/result.h"

namespace kvsim::fuzz {

/// Cuts lines and cases off the front of a search's state.
class StateReader {
 public:
  /// Begins behind the first `done` bytes, whole lines.
  explicit StateReader(std::string_view text, std::size_t done = 0);

  /// The integers of a line `KEY N N …`, as many as `values` has, none of them negative.
  [[nodiscard]] Result<bool> integers(std::string_view key, std::span<std::int64_t> values);
  /// The text of a case, to its line `end`.
  [[nodiscard]] std::string_view next_case();
  /// The same failure of what next_case() returned last, with its line in front.
  [[nodiscard]] Error in_case(const Error& error) const;
  [[nodiscard]] bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  std::int64_t line_ = 0;
  std::int64_t case_line_ = 0;
};

}  // namespace kvsim::fuzz
