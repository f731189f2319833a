// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvsim {

/// Longest text of a user's that an error message repeats, in characters; the rest becomes "…".
inline constexpr std::size_t printable_limit = 64;

/// A text from the command line as it may stand in a one-line message: control characters and
/// bytes that are not UTF-8 become \n, \t or \xNN, and a long text is cut at `limit` characters.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = printable_limit);

/// `printable` in single quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// Number of characters (Unicode code points) of a UTF-8 text: its width in a table, since
/// nothing that is printed there is wider or narrower than one column.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Bytes of the UTF-8 character that starts `text`; 0 when it is not well formed (overlong forms,
/// surrogates and values above U+10FFFF included).
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace kvsim
