// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "model/tokenizer.h"
#include "run/run_loop.h"

namespace kvsim {

/// The options that say what a prompt is.
[[nodiscard]] std::span<const OptionSpec> prompt_option_rows();

/// Prompts with what a report says about them.
struct PromptList {
  std::vector<RunPrompt> prompts;
  std::vector<std::string> answers;  ///< of each, as its file gives it; may be empty
  std::string source;                ///< for people: "4 of 1319 prompts of gsm8k.jsonl"
};

/// What turns prompts into token ids.
struct PromptEncoding {
  const Tokenizer* tokenizer = nullptr;  ///< null: ids only
  std::int64_t vocabulary = 0;
  std::string folder;       ///< the model's, whose chat template --chat applies
  std::string own_prompts;  ///< the model's own file, used where no option names a prompt; or empty
  std::int64_t own_limit = 4;  ///< of these the first, where --limit does not say otherwise
};

/// The prompts of --prompt, --prompts or --ids, after --few-shot, --chat, --limit and
/// --sample-seed. A
/// prompt's number is its place in the list before any is left out. Errors: of load_prompts (file);
/// no prompts, or of two options; a text without a tokenizer (usage).
[[nodiscard]] Result<PromptList> prompt_list(const ParsedOptions& options,
                                             const PromptEncoding& encoding);

/// Token counts of the prompts of --batch-with; none without it.
[[nodiscard]] Result<std::vector<std::int64_t>> neighbour_lengths(const ParsedOptions& options,
                                                                  const PromptEncoding& encoding);

}  // namespace kvsim
