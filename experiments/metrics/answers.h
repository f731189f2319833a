// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The number that an answer to a word problem of GSM8K ends with.
namespace kvsim::metrics {

/// Where the number is looked for.
enum class AnswerRule : std::uint8_t {
  /// The first "#### " with a number behind it, as the data themselves end. Source:
  /// openai/grade-school-math, grade_school_math/dataset.py, extract_answer(), snapshot 2909d34
  /// (evidence: documented); "strict-match" of EleutherAI/lm-evaluation-harness,
  /// lm_eval/tasks/gsm8k/gsm8k.yaml.
  marked,
  /// The last number of the text: "flexible-extract" of the same file, version 3.0, pattern
  /// (-?[$0-9.,]{2,})|(-?[0-9]+). Other than there, a match without a digit, such as "...", is
  /// passed over.
  last_number,
};

/// What a model was meant to write: the text before the first of "Question:", "</s>",
/// "<|im_end|>" (where lm-evaluation-harness stops, as above) and "<|endoftext|>".
[[nodiscard]] std::string_view before_stop(std::string_view text);

/// The decimal number that a text stands for, in its shortest form: dollar signs, commas and points
/// at the end fall away, so do zeros that change nothing. "$1,234.50" gives "1234.5", "-0" gives
/// "0". Nothing for other texts.
[[nodiscard]] std::optional<std::string> canonical_number(std::string_view text);

/// The answer in a text, canonical. Nothing where there is none.
[[nodiscard]] std::optional<std::string> extract_answer(std::string_view text, AnswerRule rule);

/// Whether the answer in before_stop(text) has the value of the marked answer in `expected`, the
/// field "answer" of the data. Values are compared, so "18.00" is 18; lm-evaluation-harness
/// compares texts. Nothing where `expected` has no marked answer.
[[nodiscard]] std::optional<bool> is_correct(std::string_view text, std::string_view expected,
                                             AnswerRule rule);

}  // namespace kvsim::metrics
