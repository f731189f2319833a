// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/token_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/printable.h"

namespace kvsim {

std::string TokenText::one(std::int64_t id) const {
  if (!tokenizer_) return std::to_string(id);
  return fmt::format("\"{}\"", printable(tokenizer_->token_bytes(static_cast<TokenId>(id)), 24));
}

std::string TokenText::all(const std::vector<std::int64_t>& ids, std::size_t limit) const {
  if (!tokenizer_) return printable(fmt::format("{}", fmt::join(ids, " ")), limit);
  const std::vector<TokenId> tokens(ids.begin(), ids.end());
  const Result<std::string> text = tokenizer_->decode(tokens);
  return text ? printable(*text, limit) : std::string();
}

}  // namespace kvsim
