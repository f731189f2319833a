// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// A token's number: 0 to vocabulary_size() - 1.
using TokenId = std::int32_t;

/// What a tokenizer file or a text may hold; it bounds the memory: about 150 bytes a token and 100
/// a merge besides three times their texts (the largest tokenizer.json that is accepted, of short
/// tokens, took 310 MB while it was read), and a small multiple of the text to encode.
struct TokenizerLimits {
  static constexpr std::size_t file_bytes = std::size_t{1} << 27;  ///< but a GGUF's weights
  static constexpr std::size_t tokens = std::size_t{1} << 20;
  static constexpr std::size_t merges = std::size_t{1} << 21;
  static constexpr std::size_t token_bytes = 1 << 16;              ///< of one token's text
  static constexpr std::size_t text_bytes = std::size_t{1} << 24;  ///< of one text to encode
};

struct EncodeOptions {
  /// Put the beginning-of-sequence token in front; nullopt: as the model's own rule says.
  std::optional<bool> add_bos = {};
  /// Control tokens written out in the text ("<|im_start|>") become their ids. If not, they are
  /// text like any other. Tokens that are added for their text alone are split off in any case.
  bool special_tokens = true;
};

/// Text to token ids and back, for one vocabulary. Special tokens are split off first, at each
/// place the longest; what stands between them is encoded part by part. Three kinds:
///  - SentencePiece (Llama-2, Mistral, Gemma) by libsentencepiece, also for llama2.c's .bin. Each
///    part gets the space in front that the vocabulary asks for.
///  - Byte-level BPE (GPT-2, StarCoder, SmolLM2, Qwen2, Llama-3): words by regular expression, then
///    merges on bytes. Unicode classes are those of PCRE2.
///  - BPE on characters with a fallback to bytes: what a tokenizer.json says for Llama-2 or Gemma.
/// A value: copies share one immutable vocabulary and may be used by threads at once. Errors name
/// the file or the text.
class Tokenizer {
 public:
  struct Data;

  /// A tokenizer.json, a SentencePiece tokenizer.model, a GGUF file or llama2.c's tokenizer .bin,
  /// told apart by content; or a folder that holds tokenizer.json or, without it, tokenizer.model.
  /// In a folder, and beside a tokenizer.json, tokenizer_config.json is read too: its bos_token,
  /// eos_token and add_bos_token go before those of the tokenizer.
  [[nodiscard]] static Result<Tokenizer> load(const std::string& path);

  /// One file's content; `source` begins every message.
  [[nodiscard]] static Result<Tokenizer> parse(std::span<const std::byte> bytes,
                                               std::string_view source);

  /// The ids of a text. Error (ErrorKind::usage) for a text that is not UTF-8 or too long, and for
  /// one that the vocabulary has no tokens for.
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::string_view text,
                                                    const EncodeOptions& options = {}) const;

  /// The bytes that the ids stand for; they may begin or end inside a character. Control tokens
  /// give nothing, or their name with `special_tokens`. The space that encoding puts in front is
  /// taken off again. Error (ErrorKind::usage) for an id that is not in the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const TokenId> ids,
                                           bool special_tokens = false) const;

  /// The bytes of one token, a control token's name; `id` must be in the vocabulary.
  [[nodiscard]] std::string_view token_bytes(TokenId id) const;
  /// Whether it is a control token, such as the one that begins a sequence.
  [[nodiscard]] bool is_control(TokenId id) const;
  /// The token with exactly this name, such as "<|im_end|>"; nullopt if there is none.
  [[nodiscard]] std::optional<TokenId> find_special(std::string_view name) const;

  [[nodiscard]] std::int64_t vocabulary_size() const;
  [[nodiscard]] std::optional<TokenId> bos() const;  ///< begins a sequence
  [[nodiscard]] std::optional<TokenId> eos() const;  ///< ends a sequence
  [[nodiscard]] bool adds_bos() const;               ///< the model's own rule
  /// "SentencePiece", "byte-level BPE" or "BPE on characters".
  [[nodiscard]] std::string_view kind() const;

 private:
  explicit Tokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  std::shared_ptr<const Data> data_;
};

}  // namespace kvsim
