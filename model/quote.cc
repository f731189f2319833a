// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/quote.h"

#include <fmt/format.h>

namespace kvsim {
namespace {

void append_hex(std::string& out, char character) {
  fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                 static_cast<unsigned>(static_cast<unsigned char>(character)));
}

}  // namespace

std::string quote(std::string_view text, std::size_t limit) {
  std::string out = "\"";
  for (const char character : text.substr(0, limit)) {
    const bool plain =
        character >= ' ' && character <= '~' && character != '"' && character != '\\';
    if (plain) {
      out += character;
    } else {
      append_hex(out, character);
    }
  }
  out += '"';
  if (text.size() > limit) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::string quote_path(std::string_view path) {
  std::string out;
  for (const char character : path) {
    const auto code = static_cast<unsigned char>(character);
    if (code < 0x20 || code == 0x7f || character == '\\') {
      append_hex(out, character);
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace kvsim
