// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"
#include "softfloat/result.h"

namespace kvsim {

/// A small file of a model's folder.
struct TextFile {
  std::string name;
  std::string text;
};

/// A byte-level BPE vocabulary as the tokenizer.json of Hugging Face's tokenizers library. Error
/// (ErrorKind::file) for tokens that are not UTF-8.
[[nodiscard]] Result<std::string> tokenizer_json(const Vocabulary& vocabulary);

/// A SentencePiece vocabulary as a ModelProto, the content of tokenizer.model.
[[nodiscard]] std::string sentencepiece_model(const Vocabulary& vocabulary);

/// The tokenizer of a GGUF file as the files of a Hugging Face folder: tokenizer.json or
/// tokenizer.model, and tokenizer_config.json with the special tokens and the chat template.
/// `spm_class` is the class that transformers is told to read a SentencePiece vocabulary with. None
/// where the file has no tokenizer. Errors as of read_gguf_vocabulary.
[[nodiscard]] Result<std::vector<TextFile>> gguf_tokenizer_files(std::span<const std::byte> bytes,
                                                                 std::string_view spm_class,
                                                                 std::string_view source);

}  // namespace kvsim
