// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>

/// Where two lists of token ids part.
namespace kvsim::metrics {

/// Two texts, token by token. Everything from the flip on compares two different contexts.
struct TokenDivergence {
  /// The first position, from 0, at which the texts differ: another token, or one of them has
  /// ended.
  std::optional<std::int64_t> flip_index;
  std::int64_t first_tokens = 0;  ///< length of each
  std::int64_t second_tokens = 0;
  std::int64_t differing = 0;  ///< positions with another token, or with a token in one text only
  double share = 0;            ///< differing ÷ length of the longer text; 0 for two empty texts

  friend bool operator==(const TokenDivergence&, const TokenDivergence&) = default;
};

/// Compares two texts position by position. A text that is the beginning of the other differs from
/// it where it ends.
[[nodiscard]] TokenDivergence token_divergence(std::span<const std::int64_t> first,
                                               std::span<const std::int64_t> second);

}  // namespace kvsim::metrics
