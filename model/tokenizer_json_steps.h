// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "model/vocabulary.h"

namespace kvsim {

/// The steps around the model in a tokenizer.json, each null or an object, taken over into the
/// vocabulary. What is wrong, without the file's name, or nothing. A step that is not known is
/// refused: leaving it out would change ids in silence.
[[nodiscard]] std::optional<std::string> read_normalizer_steps(const nlohmann::json& step,
                                                               Vocabulary& vocabulary);
/// A ByteLevel step makes the vocabulary's kind byte_level_bpe.
[[nodiscard]] std::optional<std::string> read_pre_tokenizer(const nlohmann::json& step,
                                                            Vocabulary& vocabulary);
/// A template that puts a token in front makes it the vocabulary's bos, which is then added.
[[nodiscard]] std::optional<std::string> read_post_processor(const nlohmann::json& step,
                                                             Vocabulary& vocabulary);

}  // namespace kvsim
