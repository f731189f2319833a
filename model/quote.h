// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvsim {

/// Text from a file, in double quotes, for a one-line error message. Every byte outside printable
/// ASCII, the quote and the backslash become \xNN, so that no file can forge a line, move the
/// cursor or reverse the text. Text of more than `limit` bytes is cut and its length named.
[[nodiscard]] std::string quote(std::string_view text, std::size_t limit = 64);

/// A path for the front of an error message: as the user wrote it, with control bytes and the
/// backslash as \xNN.
[[nodiscard]] std::string quote_path(std::string_view path);

}  // namespace kvsim
