// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"
#include "softfloat/result.h"

namespace kvsim {

/// The part of a tokenizer that differs by kind: text without special tokens to ids.
class TokenEncoder {
 public:
  TokenEncoder() = default;
  TokenEncoder(const TokenEncoder&) = delete;
  TokenEncoder& operator=(const TokenEncoder&) = delete;
  virtual ~TokenEncoder() = default;

  /// Adds the ids of `part`, which is UTF-8 and not empty, to `ids`. `at_start`: no text and no
  /// special token stands before it. Errors are ErrorKind::usage. Threads may call it at once.
  [[nodiscard]] virtual Result<bool> encode(std::string_view part, bool at_start,
                                            std::vector<TokenId>& ids) const = 0;
};

/// By libsentencepiece (kind sentencepiece), through a ModelProto written from the vocabulary.
[[nodiscard]] Result<std::shared_ptr<const TokenEncoder>> make_sentencepiece_encoder(
    const Vocabulary& vocabulary, std::string_view source);

/// By normaliser, words and merges (kinds byte_level_bpe and character_bpe).
[[nodiscard]] Result<std::shared_ptr<const TokenEncoder>> make_bpe_encoder(
    const Vocabulary& vocabulary, std::string_view source);

/// The bytes behind a byte-level spelling ("Ġthe" is " the"); the text itself if it holds a
/// character that stands for no byte.
[[nodiscard]] std::string decode_byte_level(std::string_view text);
/// The byte-level spelling of one byte, in UTF-8.
[[nodiscard]] std::string byte_level_spelling(unsigned char byte);

}  // namespace kvsim
