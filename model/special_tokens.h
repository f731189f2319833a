// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"

namespace kvsim {

/// The tokens that stand in a text under their own name, and how a text is cut at them.
class SpecialTokens {
 public:
  /// A piece of the text: a token, or text to encode.
  struct Part {
    std::string_view text;
    std::optional<TokenId> token = {};
  };

  /// Takes the control tokens and, with `user_defined`, those that are added for their text alone.
  void take(std::span<const Piece> pieces, bool user_defined);

  /// Cuts the text, at each place at the longest token. `control` false leaves control tokens in
  /// the text. Parts of text are never empty.
  [[nodiscard]] std::vector<Part> split(std::string_view text, bool control) const;

  [[nodiscard]] std::optional<TokenId> find(std::string_view name) const;

 private:
  struct Entry {
    TokenId id = 0;
    bool control = false;
    bool takes_left_space = false;
    bool takes_right_space = false;
  };
  /// The longest token at the beginning of `text`; its length is 0 if there is none.
  [[nodiscard]] std::size_t match(std::string_view text, bool control, const Entry*& entry) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::array<std::vector<std::size_t>, 256> lengths_;  ///< by first byte, longest first
};

}  // namespace kvsim
