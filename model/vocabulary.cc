// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/vocabulary.h"

#include <utf8proc.h>

#include <charconv>

namespace kvsim {

std::optional<std::uint8_t> byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  std::uint8_t value = 0;
  const auto [end, status] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (status != std::errc() || end != text.data() + 5) return std::nullopt;
  return value;
}

std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) break;
    at += static_cast<std::size_t>(length);
  }
  return at;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  while (!from.empty()) {
    const std::size_t next = text.find(from, at);
    if (next == std::string_view::npos) break;
    out.append(text.substr(at, next - at)).append(to);
    at = next + from.size();
  }
  out.append(text.substr(at));
  return out;
}

}  // namespace kvsim
