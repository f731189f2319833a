// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/prompt_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "cli/printable.h"
#include "model/chat.h"
#include "model/prompts.h"
#include "sim/philox.h"

namespace kvsim {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 20;
/// Stream of the sample: no other random numbers of a run have it.
constexpr std::uint64_t sample_stream = 0x73616d706c65;  // "sample"

constexpr std::array prompt_rows{
    OptionSpec{"--prompt", "TEXT", "a prompt; may be repeated", true},
    OptionSpec{
        "--prompts", "FILE",
        "prompts: JSON lines with a field question, prompt or text (GSM8K), or one line each"},
    OptionSpec{"--ids", "FILE", "prompts as token ids, one list on each line; needs no tokenizer"},
    OptionSpec{"--field", "NAME", "field of a JSON line that holds the prompt"},
    OptionSpec{"--few-shot", "FILE",
               "JSON lines with question and answer, put in front of every prompt as \"Question: "
               "... Answer: ...\""},
    OptionSpec{"--chat", "", "write each prompt as the user's turn in the model's chat template"},
    OptionSpec{"--chat-template", "NAME", "the same in the template of that name"},
    OptionSpec{"--limit", "N", "the first N prompts only"},
    OptionSpec{"--sample-seed", "N", "with --limit: N prompts drawn under this seed instead"},
};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<std::vector<Prompt>> read_file(const ParsedOptions& options, const std::string& path,
                                      PromptFormat format) {
  PromptOptions reading;
  reading.format = format;
  reading.field = options.value("--field").value_or("");
  return load_prompts(path, reading);
}

/// All prompts that the options name, and where they come from.
Result<std::vector<Prompt>> named_prompts(const ParsedOptions& options,
                                          const PromptEncoding& encoding, std::string& source) {
  const int given = static_cast<int>(options.has("--prompt")) +
                    static_cast<int>(options.has("--prompts")) +
                    static_cast<int>(options.has("--ids"));
  if (given > 1) {
    return usage("prompts come from several of --prompt, --prompts and --ids; one is accepted");
  }
  if (const auto path = options.value("--prompts")) {
    source = *path;
    return read_file(options, *path, PromptFormat::automatic);
  }
  if (const auto path = options.value("--ids")) {
    source = *path;
    return read_file(options, *path, PromptFormat::ids);
  }
  if (!options.has("--prompt") && !encoding.own_prompts.empty()) {
    source = "the model's own";
    return load_prompts(encoding.own_prompts);
  }
  source = "--prompt";
  std::vector<Prompt> prompts;
  for (const std::string& text : options.values("--prompt")) {
    if (text.empty()) return usage("--prompt is ''; a text of one character or more is accepted");
    Prompt prompt;
    prompt.number = std::ssize(prompts) + 1;
    prompt.text = text;
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) {
    return usage("run has no prompt; --prompt TEXT, --prompts FILE or --ids FILE is accepted");
  }
  return prompts;
}

Result<bool> add_examples(const ParsedOptions& options, std::vector<Prompt>& prompts) {
  const auto path = options.value("--few-shot");
  if (!path) return true;
  const auto examples = load_prompts(*path, {PromptFormat::json_lines, {}});
  if (!examples) return examples.error();
  const auto prefix = few_shot_prefix(*examples);
  if (!prefix) return Error{prefix.error().kind, "--few-shot: " + prefix.error().message};
  return surround_prompts(prompts, *prefix + "Question: ", "\nAnswer:");
}

/// Puts every prompt into the model's chat template; holds how to encode what comes out.
Result<EncodeOptions> apply_template(const ParsedOptions& options, const PromptEncoding& encoding,
                                     std::vector<Prompt>& prompts) {
  EncodeOptions encode;
  const auto name = options.value("--chat-template");
  if (!name && !options.has("--chat")) return encode;
  const auto row = name ? find_chat_template(*name) : chat_template_of(encoding.folder);
  if (!row) return row.error();
  for (Prompt& prompt : prompts) {
    if (!prompt.ids.empty()) return usage("--chat is given with token ids; texts are accepted");
    const std::array messages{ChatMessage{ChatRole::user, prompt.text}};
    auto text = apply_chat(**row, messages);
    if (!text) return text.error();
    prompt.text = std::move(*text);
  }
  if ((*row)->holds_bos) encode.add_bos = false;
  return encode;
}

/// The places of the prompts that are kept.
Result<std::vector<std::size_t>> kept_places(const ParsedOptions& options, std::size_t count,
                                             std::int64_t all) {
  const auto limit = integer_option(options, "--limit", all, 1, most);
  if (!limit) return limit.error();
  const std::size_t wanted = std::min(count, static_cast<std::size_t>(*limit));
  if (options.has("--sample-seed")) {
    if (!options.has("--limit")) return usage("--sample-seed is given without --limit");
    const auto seed =
        integer_option(options, "--sample-seed", 0, 0, std::numeric_limits<std::int64_t>::max());
    if (!seed) return seed.error();
    return sample_indices(count, wanted, [&](std::size_t index) {
      return philox_bits(static_cast<std::uint64_t>(*seed), sample_stream,
                         static_cast<std::uint64_t>(index));
    });
  }
  std::vector<std::size_t> places(wanted);
  for (std::size_t place = 0; place < wanted; ++place) places[place] = place;
  return places;
}

Result<std::vector<TokenId>> ids_of(const Prompt& prompt, const PromptEncoding& encoding,
                                    const EncodeOptions& encode) {
  if (prompt.ids.empty() && encoding.tokenizer == nullptr) {
    return usage("the model has no tokenizer; --tokenizer FILE, or --ids FILE is accepted");
  }
  return prompt_ids(prompt, encoding.tokenizer, encoding.vocabulary, encode);
}

}  // namespace

std::span<const OptionSpec> prompt_option_rows() { return prompt_rows; }

Result<PromptList> prompt_list(const ParsedOptions& options, const PromptEncoding& encoding) {
  PromptList list;
  auto prompts = named_prompts(options, encoding, list.source);
  if (!prompts) return prompts.error();
  if (const auto added = add_examples(options, *prompts); !added) return added.error();
  const auto encode = apply_template(options, encoding, *prompts);
  if (!encode) return encode.error();
  const bool are_own =
      !options.has("--prompt") && !options.has("--prompts") && !options.has("--ids");
  const auto places = kept_places(options, prompts->size(), are_own ? encoding.own_limit : most);
  if (!places) return places.error();
  list.prompts.reserve(places->size());
  list.answers.reserve(places->size());
  for (const std::size_t place : *places) {
    auto ids = ids_of((*prompts)[place], encoding, *encode);
    if (!ids) return ids.error();
    list.prompts.push_back({static_cast<std::int64_t>(place), std::move(*ids)});
    list.answers.push_back(std::move((*prompts)[place].answer));
  }
  list.source =
      fmt::format("{} of {}: {}", places->size(), prompts->size(), printable(list.source));
  return list;
}

Result<std::vector<std::int64_t>> neighbour_lengths(const ParsedOptions& options,
                                                    const PromptEncoding& encoding) {
  std::vector<std::int64_t> lengths;
  const auto path = options.value("--batch-with");
  if (!path) return lengths;
  auto prompts =
      read_file(options, *path, options.has("--ids") ? PromptFormat::ids : PromptFormat::automatic);
  if (!prompts) return prompts.error();
  const auto encode = apply_template(options, encoding, *prompts);
  if (!encode) return encode.error();
  lengths.reserve(prompts->size());
  for (const Prompt& prompt : *prompts) {
    const auto ids = ids_of(prompt, encoding, *encode);
    if (!ids) return Error{ids.error().kind, "--batch-with: " + ids.error().message};
    lengths.push_back(std::ssize(*ids));
  }
  return lengths;
}

}  // namespace kvsim
