// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/special_tokens.h"

#include <algorithm>
#include <functional>

namespace kvsim {
namespace {

constexpr std::string_view white_space = " \t\n\v\f\r";

}  // namespace

void SpecialTokens::take(std::span<const Piece> pieces, bool user_defined) {
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    const Piece& piece = pieces[index];
    const bool control = piece.kind == PieceKind::control;
    if (piece.text.empty() || (!control && piece.kind != PieceKind::unknown &&
                               !(user_defined && piece.kind == PieceKind::user_defined))) {
      continue;
    }
    entries_.try_emplace(piece.text, Entry{.id = static_cast<TokenId>(index),
                                           .control = piece.kind != PieceKind::user_defined,
                                           .takes_left_space = piece.takes_left_space,
                                           .takes_right_space = piece.takes_right_space});
    lengths_[static_cast<unsigned char>(piece.text.front())].push_back(piece.text.size());
  }
  for (std::vector<std::size_t>& lengths : lengths_) {
    std::ranges::sort(lengths, std::greater<>());
    lengths.erase(std::ranges::unique(lengths).begin(), lengths.end());
  }
}

std::optional<TokenId> SpecialTokens::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.id);
}

std::size_t SpecialTokens::match(std::string_view text, bool control, const Entry*& entry) const {
  for (const std::size_t length : lengths_[static_cast<unsigned char>(text.front())]) {
    if (length > text.size()) continue;
    const auto found = entries_.find(text.substr(0, length));
    if (found == entries_.end() || (found->second.control && !control)) continue;
    entry = &found->second;
    return length;
  }
  return 0;
}

std::vector<SpecialTokens::Part> SpecialTokens::split(std::string_view text, bool control) const {
  std::vector<Part> parts;
  std::size_t begin = 0;  // of the text that no part holds yet
  std::size_t at = 0;
  while (at < text.size()) {
    const Entry* entry = nullptr;
    const std::size_t length = match(text.substr(at), control, entry);
    if (length == 0) {
      ++at;
      continue;
    }
    std::string_view before = text.substr(begin, at - begin);
    if (entry->takes_left_space) {
      before = before.substr(0, before.find_last_not_of(white_space) + 1);
    }
    if (!before.empty()) parts.push_back({before, std::nullopt});
    parts.push_back({text.substr(at, length), entry->id});
    at += length;
    if (entry->takes_right_space) {
      at = std::min(text.find_first_not_of(white_space, at), text.size());
    }
    begin = at;
  }
  if (begin < text.size()) parts.push_back({text.substr(begin), std::nullopt});
  return parts;
}

}  // namespace kvsim
