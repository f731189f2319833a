// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/word_splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "model/quote.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace kvsim {
namespace {

constexpr std::size_t most_rules = 16;
constexpr std::size_t longest_pattern = 4096;
constexpr std::uint32_t match_steps = 10'000'000;
constexpr std::uint32_t match_memory_kib = 64 << 10;

constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view digit_pattern = R"(\p{N})";
constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)"
    R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

SplitRule isolated(std::string_view pattern) { return {.pattern = std::string(pattern)}; }

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 160> text = {};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// The pattern with `\\s` and `\\S` spelled out as Unicode's white space: PCRE2 counts U+180E in,
/// which neither Unicode nor the library that the patterns were written for does.
std::string with_unicode_white_space(std::string_view pattern) {
  constexpr std::string_view white_space = R"(\t-\r\x{85}\p{Z})";
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char character = pattern[at];
    const char next = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (character == '\\' && next == 's') {
      out += in_class ? std::string(white_space) : fmt::format("[{}]", white_space);
      ++at;
    } else if (character == '\\' && next == 'S' && !in_class) {
      out += fmt::format("[^{}]", white_space);
      ++at;
    } else if (character == '\\' && next != '\0') {
      out.append({character, next});
      ++at;
    } else {
      out += character;
      if (character == '[' && !in_class) {
        in_class = true;
        // A bracket that closes directly behind the opening stands for itself.
        if (next == '^') out += pattern[++at];
        if (at + 1 < pattern.size() && pattern[at + 1] == ']') out += pattern[++at];
      } else if (character == ']') {
        in_class = false;
      }
    }
  }
  return out;
}

struct Segment {
  std::string_view text;
  bool matched = false;
};

void apply(SplitRule::Behaviour behaviour, std::span<const Segment> segments,
           std::vector<std::string_view>& words) {
  using enum SplitRule::Behaviour;
  const auto join = [](std::string_view left, std::string_view right) {
    return std::string_view(left.data(), left.size() + right.size());
  };
  bool after_match = false;
  for (const Segment& segment : segments) {
    const bool first = &segment == segments.data();
    const bool joins =
        !first && segment.matched != after_match &&
        (behaviour == merged_with_previous ? segment.matched
                                           : behaviour == merged_with_next && after_match);
    after_match = segment.matched;
    if (segment.matched && behaviour == removed) continue;
    if (joins) {
      words.back() = join(words.back(), segment.text);
    } else {
      words.push_back(segment.text);
    }
  }
}

}  // namespace

std::string_view gpt2_word_pattern() { return gpt2_pattern; }

std::span<const WordRules> word_rules() {
  static const std::vector<SplitRule> gpt2 = {isolated(gpt2_pattern)};
  static const std::vector<SplitRule> starcoder = {isolated(digit_pattern), isolated(gpt2_pattern)};
  constexpr std::string_view pages = "llama.cpp, src/llama-vocab.cpp, 2026-11";
  static const std::vector<WordRules> rows = {
      {.name = "gpt-2", .rules = gpt2, .source = pages},
      {.name = "starcoder", .rules = starcoder, .source = pages},
      {.name = "refact", .rules = starcoder, .source = pages},
      {.name = "smollm", .rules = starcoder, .source = pages},
      {.name = "qwen2",
       .rules = {isolated(qwen2_pattern)},
       .nfc = true,
       .source = "tokenizer.json of Qwen2: NFC, then this pattern"},
      {.name = "llama-bpe",
       .rules = {isolated(llama3_pattern)},
       .ignore_merges = true,
       .add_bos = true,
       .source = "tokenizer.json of Llama-3"},
  };
  return rows;
}

const WordRules* find_word_rules(std::string_view name) {
  const auto row = std::ranges::find(word_rules(), name, &WordRules::name);
  return row == word_rules().end() ? nullptr : &*row;
}

struct WordSplitter::Compiled {
  SplitRule rule;
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeContext> context;

  /// Adds the segments of `text`, which is not empty. What went wrong, or nothing.
  [[nodiscard]] std::optional<std::string> cut(std::string_view text,
                                               std::vector<Segment>& segments) const;
};

std::optional<std::string> WordSplitter::Compiled::cut(std::string_view text,
                                                       std::vector<Segment>& segments) const {
  const std::unique_ptr<pcre2_match_data, FreeData> data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) return "out of memory";
  const auto* units = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t at = 0;
  while (at < text.size()) {
    const int found = pcre2_match(code.get(), units, text.size(), at,
                                  PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) return message_of(found);
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    // \K in a look-around can make a match begin elsewhere; such a pattern is no split rule.
    if (ends[0] < at || ends[1] <= ends[0]) return "a match that does not go forward";
    if (ends[0] > at) segments.push_back({text.substr(at, ends[0] - at), rule.invert});
    segments.push_back({text.substr(ends[0], ends[1] - ends[0]), !rule.invert});
    at = ends[1];
  }
  if (at < text.size()) segments.push_back({text.substr(at), rule.invert});
  return std::nullopt;
}

Result<WordSplitter> WordSplitter::make(std::span<const SplitRule> rules, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  if (rules.size() > most_rules) {
    return fail(fmt::format("{} split rules; accepted: at most {}", rules.size(), most_rules));
  }
  WordSplitter splitter;
  for (const SplitRule& rule : rules) {
    if (rule.pattern.empty() || rule.pattern.size() > longest_pattern) {
      return fail(fmt::format("a split pattern of {} bytes; accepted: 1 to {}", rule.pattern.size(),
                              longest_pattern));
    }
    const std::uint32_t options =
        rule.literal ? PCRE2_UTF | PCRE2_LITERAL
                     : PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
    int code = 0;
    PCRE2_SIZE offset = 0;
    auto compiled = std::make_shared<Compiled>();
    compiled->rule = rule;
    const std::string pattern =
        rule.literal ? rule.pattern : with_unicode_white_space(rule.pattern);
    compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       options, &code, &offset, nullptr));
    if (compiled->code == nullptr) {
      return fail(fmt::format("split pattern {}: {} at byte {}; accepted: a regular expression",
                              quote(rule.pattern), message_of(code), offset));
    }
    compiled->context.reset(pcre2_match_context_create(nullptr));
    if (compiled->context == nullptr) return fail("out of memory; accepted: a smaller file");
    pcre2_set_match_limit(compiled->context.get(), match_steps);
    pcre2_set_heap_limit(compiled->context.get(), match_memory_kib);
    splitter.rules_.push_back(std::move(compiled));
  }
  return splitter;
}

Result<std::vector<std::string_view>> WordSplitter::split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  std::vector<Segment> segments;
  for (const auto& compiled : rules_) {
    std::vector<std::string_view> next;
    for (const std::string_view word : words) {
      segments.clear();
      if (const auto problem = compiled->cut(word, segments)) {
        return Error{ErrorKind::usage,
                     fmt::format("split pattern {} on {}: {}; accepted: a text that it can split",
                                 quote(compiled->rule.pattern), quote(word), *problem)};
      }
      apply(compiled->rule.behaviour, segments, next);
    }
    words = std::move(next);
  }
  return words;
}

}  // namespace kvsim
