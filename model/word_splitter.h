// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"
#include "softfloat/result.h"

namespace kvsim {

/// The split rules that a GGUF file names under tokenizer.ggml.pre.
struct WordRules {
  std::string_view name;
  std::vector<SplitRule> rules = {};
  bool nfc = false;            ///< Unicode normalisation form C comes first
  bool ignore_merges = false;  ///< a word that is a token needs no merges
  bool add_bos = false;        ///< unless the file says otherwise
  std::string_view source = {};
};

/// Every row; built once.
[[nodiscard]] std::span<const WordRules> word_rules();
/// Null if there is no row of that name.
[[nodiscard]] const WordRules* find_word_rules(std::string_view name);

/// GPT-2's own rule, also that of the ByteLevel pre-tokenizer in a tokenizer.json.
[[nodiscard]] std::string_view gpt2_word_pattern();

/// Cuts text into the words that byte-pair merges stay inside of, by regular expressions (PCRE2
/// with UTF and UCP; limits on backtracking steps and memory make a hostile pattern fail instead of
/// hang). Immutable: threads may share it.
class WordSplitter {
 public:
  /// At most 16 rules, patterns of at most 4096 bytes. Errors name the pattern and its flaw.
  [[nodiscard]] static Result<WordSplitter> make(std::span<const SplitRule> rules,
                                                 std::string_view source);

  /// The words of `text`, which must be UTF-8, in order; views into it. Error (ErrorKind::usage)
  /// when a pattern passes its limits on this text.
  [[nodiscard]] Result<std::vector<std::string_view>> split(std::string_view text) const;

 private:
  struct Compiled;
  std::vector<std::shared_ptr<const Compiled>> rules_;
};

}  // namespace kvsim
