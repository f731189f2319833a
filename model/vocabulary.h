// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/tokenizer.h"
#include "softfloat/result.h"

namespace kvsim {

/// U+2581, which stands for a space in SentencePiece vocabularies.
inline constexpr std::string_view space_mark = "\xe2\x96\x81";

enum class VocabularyKind { sentencepiece, byte_level_bpe, character_bpe };

/// The numbers are those of SentencePiece's ModelProto and of GGUF's token types.
enum class PieceKind : std::uint8_t {
  normal = 1,
  unknown,
  control,       ///< never made from ordinary text
  user_defined,  ///< always a token of its own
  unused,
  byte,  ///< "<0x0A>": one byte that no other piece holds
};

struct Piece {
  std::string text = {};  ///< as the file spells it: spaces as space_mark, or byte-level characters
  float score = 0;        ///< SentencePiece: the highest is merged first
  PieceKind kind = PieceKind::normal;
  bool takes_left_space = false;   ///< an added token swallows the white space before it
  bool takes_right_space = false;  ///< … and after it
};

/// One step that rewrites a part of the text before it is split into words.
struct NormalizerStep {
  enum class Kind { nfc, prepend, prepend_once, prepend_once_at_start, replace };
  Kind kind = Kind::nfc;
  std::string from = {};  ///< replace: this text, wherever it stands
  std::string to =
      {};  ///< replace: becomes this; prepend: goes in front, "once" unless it is there
};

/// One step that cuts words: what a pattern matches and what stands between become pieces.
struct SplitRule {
  enum class Behaviour { isolated, removed, merged_with_previous, merged_with_next };
  std::string pattern = {};                   ///< PCRE2 syntax with Unicode classes
  bool literal = false;                       ///< the pattern is plain text
  Behaviour behaviour = Behaviour::isolated;  ///< what happens to the matches
  bool invert = false;                        ///< matches and the gaps between change places
};

/// Everything that a tokenizer file says, whatever its format.
struct Vocabulary {
  VocabularyKind kind = VocabularyKind::sentencepiece;
  std::vector<Piece> pieces;  ///< the index is the token's id
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;
  bool add_bos = false;

  bool space_prefix = true;              ///< SentencePiece: a space goes in front of each part
  bool remove_extra_whitespace = false;  ///< SentencePiece: runs of spaces become one

  std::vector<std::pair<std::string, std::string>> merges;  ///< BPE: the first is merged first
  std::vector<NormalizerStep> normalizer;
  std::vector<SplitRule> words;
  bool byte_fallback = false;  ///< characters without a token become byte pieces
  bool ignore_merges = false;  ///< a word that is a token needs no merges
  bool fuse_unknown = false;   ///< a run of characters without a token is one unknown token
};

/// The file formats, each with one-line errors that begin with `source`.
[[nodiscard]] Result<Vocabulary> read_gguf_vocabulary(std::span<const std::byte> bytes,
                                                      std::string_view source);
[[nodiscard]] Result<Vocabulary> read_tokenizer_json(std::string_view text,
                                                     std::string_view source);
[[nodiscard]] Result<Vocabulary> read_sentencepiece_model(std::span<const std::byte> bytes,
                                                          std::string_view source);
[[nodiscard]] Result<Vocabulary> read_llama2c_vocabulary(std::span<const std::byte> bytes,
                                                         std::string_view source);

/// The byte that "<0x0A>" names; nullopt for any other text.
[[nodiscard]] std::optional<std::uint8_t> byte_of_piece(std::string_view text);

/// How many bytes of `text` are UTF-8 from its beginning: all of them if it is valid.
[[nodiscard]] std::size_t valid_utf8_bytes(std::string_view text);

/// `text` with every `from` replaced by `to`.
[[nodiscard]] std::string replace_all(std::string_view text, std::string_view from,
                                      std::string_view to);

}  // namespace kvsim
