// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "model/mapped_file.h"
#include "model/prompt_line.h"
#include "model/quote.h"
#include "model/vocabulary.h"

namespace kvsim {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

using Problem = std::optional<std::string>;

Problem read_ids(std::string_view line, std::vector<TokenId>& ids) {
  constexpr std::string_view separators = " \t\r,[]";
  std::size_t at = line.find_first_not_of(separators);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    TokenId id = -1;
    const auto [stop, status] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (status != std::errc() || stop != word.data() + word.size() || id < 0) {
      return fmt::format("{} is no token id; accepted: whole numbers from 0 to {}", quote(word),
                         std::numeric_limits<TokenId>::max());
    }
    if (ids.size() >= PromptLimits::ids) {
      return fmt::format("more than {} ids; accepted: at most that", PromptLimits::ids);
    }
    ids.push_back(id);
    at = line.find_first_not_of(separators, end);
  }
  if (ids.empty()) return "no token ids; accepted: at least one";
  return std::nullopt;
}

Problem read_one(std::string_view line, PromptFormat format, const std::string& field,
                 Prompt& prompt) {
  if (format == PromptFormat::ids) return read_ids(line, prompt.ids);
  if (const std::size_t valid = valid_utf8_bytes(line); valid != line.size()) {
    return fmt::format("byte {} is 0x{:02x}, which is not UTF-8; accepted: UTF-8", valid + 1,
                       static_cast<unsigned char>(line[valid]));
  }
  if (format == PromptFormat::json_lines) return read_prompt_line(line, field, prompt);
  prompt.text = line;
  return std::nullopt;
}

std::string_view without_line_break(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::vector<Prompt>> parse_prompts(std::string_view content, std::string_view source,
                                          const PromptOptions& options) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  if (content.size() > PromptLimits::file_bytes) {
    return fail(fmt::format("has {} bytes; accepted: at most {}", content.size(),
                            PromptLimits::file_bytes));
  }
  const std::size_t first = content.find_first_not_of(blanks);
  if (first == std::string_view::npos) return fail("has no prompt; accepted: at least one");
  PromptFormat format = options.format;
  if (format == PromptFormat::automatic) {
    format = content[first] == '{' ? PromptFormat::json_lines : PromptFormat::lines;
  }
  std::vector<Prompt> prompts;
  std::int64_t number = 0;
  while (!content.empty()) {
    const bool whole = format == PromptFormat::text;
    const std::size_t end = whole ? content.size() : std::min(content.find('\n'), content.size());
    const std::string_view line = without_line_break(content.substr(0, end));
    content.remove_prefix(std::min(end + 1, content.size()));
    ++number;
    if (line.find_first_not_of(blanks) == std::string_view::npos) continue;
    const auto fail_here = [&](std::string_view problem) {
      return fail(fmt::format("line {}: {}", number, problem));
    };
    if (line.size() > PromptLimits::prompt_bytes) {
      return fail_here(
          fmt::format("{} bytes; accepted: at most {}", line.size(), PromptLimits::prompt_bytes));
    }
    if (prompts.size() >= PromptLimits::prompts) {
      return fail_here(
          fmt::format("more than {} prompts; accepted: at most that", PromptLimits::prompts));
    }
    Prompt& prompt = prompts.emplace_back();
    prompt.number = number;
    if (const auto problem = read_one(line, format, options.field, prompt)) {
      return fail_here(*problem);
    }
  }
  return prompts;
}

Result<std::vector<Prompt>> load_prompts(const std::string& path, const PromptOptions& options) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const std::string_view content(reinterpret_cast<const char*>(file->bytes().data()),
                                 file->bytes().size());
  return parse_prompts(content, quote_path(path), options);
}

Result<std::string> few_shot_prefix(std::span<const Prompt> examples) {
  std::string prefix;
  for (const Prompt& example : examples) {
    if (example.text.empty() || example.answer.empty()) {
      return Error{ErrorKind::usage,
                   fmt::format("example of line {} has no {}; accepted: JSON lines with question "
                               "and answer",
                               example.number, example.text.empty() ? "text" : "answer")};
    }
    prefix += fmt::format("Question: {}\nAnswer: {}\n\n", example.text, example.answer);
  }
  return prefix;
}

Result<bool> surround_prompts(std::vector<Prompt>& prompts, std::string_view prefix,
                              std::string_view suffix) {
  for (Prompt& prompt : prompts) {
    const std::size_t size = prefix.size() + prompt.text.size() + suffix.size();
    if (!prompt.ids.empty() || size > PromptLimits::prompt_bytes) {
      return Error{
          ErrorKind::usage,
          fmt::format("prompt of line {} {}; accepted: texts of at most {} bytes", prompt.number,
                      prompt.ids.empty() ? fmt::format("would have {} bytes", size)
                                         : "has token ids and takes no prefix",
                      PromptLimits::prompt_bytes)};
    }
    prompt.text = std::string(prefix).append(prompt.text).append(suffix);
  }
  return true;
}

std::vector<std::size_t> sample_indices(std::size_t count, std::size_t wanted,
                                        const std::function<std::uint64_t(std::size_t)>& random) {
  std::vector<std::pair<std::uint64_t, std::size_t>> keys;
  keys.reserve(count);
  for (std::size_t index = 0; index < count; ++index) keys.emplace_back(random(index), index);
  std::ranges::sort(keys);
  keys.resize(std::min(count, wanted));
  std::vector<std::size_t> chosen;
  chosen.reserve(keys.size());
  for (const auto& [key, index] : keys) chosen.push_back(index);
  std::ranges::sort(chosen);
  return chosen;
}

void keep_prompts(std::vector<Prompt>& prompts, std::span<const std::size_t> places) {
  std::size_t kept = 0;
  for (const std::size_t place : places) {
    if (place != kept) prompts[kept] = std::move(prompts[place]);
    ++kept;
  }
  prompts.resize(kept);
}

Result<std::vector<TokenId>> prompt_ids(const Prompt& prompt, const Tokenizer* tokenizer,
                                        std::int64_t vocabulary_size,
                                        const EncodeOptions& options) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::usage, fmt::format("prompt of line {}: {}", prompt.number, problem)};
  };
  std::vector<TokenId> ids = prompt.ids;
  if (ids.empty()) {
    if (tokenizer == nullptr) {
      return fail("is text, and the model has no tokenizer; accepted: token ids");
    }
    auto encoded = tokenizer->encode(prompt.text, options);
    if (!encoded) return fail(encoded.error().message);
    ids = std::move(*encoded);
  }
  if (ids.empty()) return fail("has no tokens; accepted: at least one");
  for (const TokenId id : ids) {
    if (id >= 0 && id < vocabulary_size) continue;
    return fail(fmt::format("token id {}; accepted: 0 to {}", id, vocabulary_size - 1));
  }
  return ids;
}

}  // namespace kvsim
