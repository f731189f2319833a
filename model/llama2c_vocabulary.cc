// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// llama2.c's tokenizer file: int32 bytes of the longest token, then for each token float score,
// int32 length and its bytes, with spaces for SentencePiece's space mark. The first three tokens
// are unknown, bos and eos, then come the 256 bytes.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "model/vocabulary.h"

namespace kvsim {

Result<Vocabulary> read_llama2c_vocabulary(std::span<const std::byte> bytes,
                                           std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  constexpr std::size_t head = 4;
  constexpr std::size_t reserved = 3;
  constexpr std::size_t byte_tokens = 256;
  std::int32_t longest = 0;
  if (bytes.size() >= head) std::memcpy(&longest, bytes.data(), head);
  if (longest < 1 || static_cast<std::size_t>(longest) > TokenizerLimits::token_bytes) {
    return fail(
        "is no tokenizer; accepted: tokenizer.json, a SentencePiece tokenizer.model, a GGUF file, "
        "llama2.c's tokenizer .bin");
  }
  Vocabulary vocabulary;
  for (std::size_t at = head; at < bytes.size();) {
    const std::size_t index = vocabulary.pieces.size();
    if (index == TokenizerLimits::tokens) {
      return fail(fmt::format("more than {} tokens; accepted: at most that", index));
    }
    float score = 0;
    std::int32_t length = 0;
    if (bytes.size() - at < 8) {
      return fail(fmt::format("token {} has {} bytes of 8; accepted: score and length", index,
                              bytes.size() - at));
    }
    std::memcpy(&score, bytes.data() + at, 4);
    std::memcpy(&length, bytes.data() + at + 4, 4);
    at += 8;
    if (length < 1 || length > longest || static_cast<std::size_t>(length) > bytes.size() - at) {
      return fail(
          fmt::format("token {} has length {}, where {} bytes follow; accepted: 1 to {}, "
                      "the longest that the file names",
                      index, length, bytes.size() - at, longest));
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data() + at),
                                static_cast<std::size_t>(length));
    at += text.size();
    Piece piece{.text = replace_all(text, " ", space_mark), .score = score};
    if (index < reserved) {
      piece.kind = index == 0 ? PieceKind::unknown : PieceKind::control;
      // The file spells them "\n<s>\n".
      piece.text = replace_all(text, "\n", "");
    } else if (index < reserved + byte_tokens) {
      if (byte_of_piece(text) != index - reserved) {
        return fail(fmt::format("token {} is no byte token; accepted: <0x{:02X}>", index,
                                index - reserved));
      }
      piece.kind = PieceKind::byte;
    }
    vocabulary.pieces.push_back(std::move(piece));
  }
  if (vocabulary.pieces.size() < reserved + byte_tokens) {
    return fail(fmt::format("has {} tokens; accepted: at least {}", vocabulary.pieces.size(),
                            reserved + byte_tokens));
  }
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.add_bos = true;
  return vocabulary;
}

}  // namespace kvsim
