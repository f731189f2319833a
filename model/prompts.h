// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "softfloat/result.h"

namespace kvsim {

/// What a file of prompts may hold; it bounds the memory to about the file's size and 200 bytes for
/// each prompt.
struct PromptLimits {
  static constexpr std::size_t file_bytes = std::size_t{1} << 28;
  static constexpr std::size_t prompt_bytes = std::size_t{1} << 24;  ///< of one prompt or line
  static constexpr std::size_t prompts = std::size_t{1} << 20;
  static constexpr std::size_t ids = std::size_t{1} << 20;  ///< of one prompt
};

/// One prompt: text, or token ids that need no tokenizer.
struct Prompt {
  std::int64_t number = 0;   ///< of its line in the file, from 1
  std::string text;          ///< empty if ids are given
  std::vector<TokenId> ids;  ///< empty if text is given
  std::string answer;        ///< the field "answer" of a JSON line (GSM8K), or empty
  friend bool operator==(const Prompt&, const Prompt&) = default;
};

enum class PromptFormat {
  automatic,  ///< json_lines if the first byte that is no blank is "{", otherwise lines
  text,       ///< the whole file is one prompt, without its last line break
  lines,      ///< each line that is not blank is a prompt
  json_lines,
  ids,  ///< each line that is not blank is a list of token ids, between blanks, commas or brackets
};

struct PromptOptions {
  PromptFormat format = PromptFormat::automatic;
  /// The field of a JSON line that holds the prompt; empty: the first of question, prompt, text,
  /// prompt_ids, token_ids, ids that the line has. A text is the prompt, an array its token ids.
  std::string field = {};
};

/// The prompts of a file, in its order. Errors (ErrorKind::file) are one line that names file,
/// line and field: no prompt at all, an empty prompt, no UTF-8, no JSON object, an id that is no
/// whole number from 0 to 2^31 - 1, more than PromptLimits.
[[nodiscard]] Result<std::vector<Prompt>> load_prompts(const std::string& path,
                                                       const PromptOptions& options = {});

/// The same for a file's content; `source` begins every message.
[[nodiscard]] Result<std::vector<Prompt>> parse_prompts(std::string_view content,
                                                        std::string_view source,
                                                        const PromptOptions& options = {});

/// Worked examples to put in front of a prompt: "Question: …\nAnswer: …\n\n" for each, as lm-eval
/// writes them for GSM8K. Empty without examples. Error (ErrorKind::usage) for an example without
/// text or answer.
[[nodiscard]] Result<std::string> few_shot_prefix(std::span<const Prompt> examples);

/// Puts `prefix` and `suffix` around every prompt's text. Error (ErrorKind::usage) if a prompt has
/// ids in place of text, or would be longer than PromptLimits allow.
[[nodiscard]] Result<bool> surround_prompts(std::vector<Prompt>& prompts, std::string_view prefix,
                                            std::string_view suffix);

/// `wanted` of the numbers 0 to count - 1, in rising order: those with the smallest random(index),
/// of equals the lower. `random` is a counter-based generator under one seed, so that a sample
/// depends on the seed and the count alone. All of them if `wanted` is at least `count`.
[[nodiscard]] std::vector<std::size_t> sample_indices(
    std::size_t count, std::size_t wanted, const std::function<std::uint64_t(std::size_t)>& random);

/// Keeps the prompts at these places, which must rise and exist.
void keep_prompts(std::vector<Prompt>& prompts, std::span<const std::size_t> places);

/// The token ids of a prompt: its own, each within the vocabulary, or its text encoded. `tokenizer`
/// may be null for prompts with ids; then `vocabulary_size` bounds them. Error (ErrorKind::usage).
[[nodiscard]] Result<std::vector<TokenId>> prompt_ids(const Prompt& prompt,
                                                      const Tokenizer* tokenizer,
                                                      std::int64_t vocabulary_size,
                                                      const EncodeOptions& options = {});

}  // namespace kvsim
