// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// GPT-2's spelling of bytes as visible characters: printable Latin-1 stands for itself, the other
// 68 bytes in order for U+0100 to U+0143.
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/token_encoder.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

constexpr bool is_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Tables {
  std::array<std::uint16_t, 256> code_of = {};
  std::array<std::int16_t, 0x144> byte_of = {};  ///< -1: stands for no byte
};

constexpr Tables make_tables() {
  Tables tables;
  for (auto& byte : tables.byte_of) byte = -1;
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::uint16_t code = is_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
    tables.code_of[byte] = code;
    tables.byte_of[code] = static_cast<std::int16_t>(byte);
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::string byte_level_spelling(unsigned char byte) {
  if (byte == '\n' && mutant_is_on(Mutant::newline_lost)) byte = ' ';
  const unsigned code = tables.code_of[byte];
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | (code >> 6U)), static_cast<char>(0x80 | (code & 0x3fU))};
}

std::string decode_byte_level(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned code = static_cast<unsigned char>(text[at]);
    if (code >= 0x80) {
      // All the characters concerned have two bytes in UTF-8.
      if ((code & 0xe0U) != 0xc0U || at + 1 == text.size()) return std::string(text);
      code = ((code & 0x1fU) << 6U) | (static_cast<unsigned char>(text[++at]) & 0x3fU);
    }
    if (code >= tables.byte_of.size() || tables.byte_of[code] < 0) return std::string(text);
    out += static_cast<char>(tables.byte_of[code]);
  }
  return out;
}

}  // namespace kvsim
