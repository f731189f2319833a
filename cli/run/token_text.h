// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/tokenizer.h"

namespace kvsim {

/// Tokens as a report shows them.
class TokenText {
 public:
  explicit TokenText(std::optional<Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  /// One token in double quotes, "\n" and bytes escaped; without a tokenizer its number.
  [[nodiscard]] std::string one(std::int64_t id) const;
  /// The text of all of them, escaped and cut at `limit` characters; without a tokenizer the
  /// numbers.
  [[nodiscard]] std::string all(const std::vector<std::int64_t>& ids, std::size_t limit) const;

 private:
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace kvsim
