// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string_view>

namespace kvsim::softfloat {

/// The candidate with the smallest edit distance to a mistyped word, for "did you mean …".
/// Insertion, deletion, replacement and the exchange of two neighbours cost 1 each; a candidate
/// that begins with the word (two characters or more) counts as one edit away; ASCII case is
/// ignored; among equals the first candidate wins. Empty when no candidate is within max(1, length
/// / 3) edits. Words and candidates of more than 64 characters are not compared.
[[nodiscard]] std::string_view nearest(std::string_view mistyped,
                                       std::span<const std::string_view> candidates);

}  // namespace kvsim::softfloat
