// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/tokenizer_json_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/quote.h"
#include "model/word_splitter.h"

namespace kvsim {
namespace {

using nlohmann::json;
using Problem = std::optional<std::string>;

constexpr std::size_t most_steps = 16;

bool flag(const json& step, const char* name, bool otherwise) {
  const auto found = step.find(name);
  return found != step.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::string text(const json& step, const char* name) {
  const auto found = step.find(name);
  return found != step.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The steps of a Sequence, or the one step itself, as a flat list; null gives none.
Problem flatten(const json& step, const char* name, const char* list,
                std::vector<const json*>& steps) {
  if (step.is_null()) return std::nullopt;
  if (!step.is_object()) return fmt::format("{} is no object; accepted: an object or null", name);
  if (text(step, "type") == "Sequence") {
    const auto found = step.find(list);
    if (found == step.end() || !found->is_array()) {
      return fmt::format("{}: a Sequence without {}; accepted: with it", name, list);
    }
    for (const json& inner : *found) {
      if (auto problem = flatten(inner, name, list, steps)) return problem;
    }
  } else {
    steps.push_back(&step);
  }
  if (steps.size() <= most_steps) return std::nullopt;
  return fmt::format("{} has more than {} steps; accepted: at most that", name, most_steps);
}

Problem unknown_step(const char* name, const json& step, std::string_view accepted) {
  return fmt::format("{} step {}; accepted: {}", name, quote(text(step, "type")), accepted);
}

/// A pattern is {"String": …} or {"Regex": …}.
std::string pattern_of(const json& step, bool& literal) {
  const auto found = step.find("pattern");
  if (found == step.end() || !found->is_object()) return {};
  literal = found->contains("String");
  return text(*found, literal ? "String" : "Regex");
}

Problem add_split(const json& step, Vocabulary& vocabulary) {
  using enum SplitRule::Behaviour;
  constexpr std::array<std::pair<std::string_view, SplitRule::Behaviour>, 4> behaviours = {
      {{"Isolated", isolated},
       {"Removed", removed},
       {"MergedWithPrevious", merged_with_previous},
       {"MergedWithNext", merged_with_next}}};
  SplitRule rule;
  rule.pattern = pattern_of(step, rule.literal);
  rule.invert = flag(step, "invert", false);
  const std::string name = text(step, "behavior");
  const auto* const row = std::ranges::find(
      behaviours, name, &std::pair<std::string_view, SplitRule::Behaviour>::first);
  if (row == behaviours.end() || rule.pattern.empty()) {
    return fmt::format(
        "pre_tokenizer step \"Split\" with behavior {} and a pattern of {} bytes; "
        "accepted: Isolated, Removed, MergedWithPrevious, MergedWithNext, and a "
        "String or Regex",
        quote(name), rule.pattern.size());
  }
  rule.behaviour = row->second;
  vocabulary.words.push_back(std::move(rule));
  return std::nullopt;
}

Problem add_metaspace(const json& step, Vocabulary& vocabulary) {
  const std::string mark =
      step.contains("replacement") ? text(step, "replacement") : std::string(space_mark);
  // Older files have the flag add_prefix_space in place of a scheme.
  std::string scheme = text(step, "prepend_scheme");
  if (scheme.empty()) scheme = flag(step, "add_prefix_space", true) ? "always" : "never";
  if (mark != space_mark || (scheme != "always" && scheme != "first" && scheme != "never")) {
    return fmt::format(
        "pre_tokenizer step \"Metaspace\" with replacement {} and prepend_scheme {};"
        " accepted: U+2581, and always, first or never",
        quote(mark), quote(scheme));
  }
  using enum NormalizerStep::Kind;
  vocabulary.normalizer.push_back({.kind = replace, .from = " ", .to = std::string(space_mark)});
  if (scheme != "never") {
    vocabulary.normalizer.push_back(
        {.kind = scheme == "always" ? prepend_once : prepend_once_at_start,
         .from = {},
         .to = std::string(space_mark)});
  }
  if (flag(step, "split", true)) {
    vocabulary.words.push_back({.pattern = std::string(space_mark),
                                .literal = true,
                                .behaviour = SplitRule::Behaviour::merged_with_next});
  }
  return std::nullopt;
}

Problem add_byte_level(const json& step, Vocabulary& vocabulary) {
  if (flag(step, "add_prefix_space", true)) {
    return "pre_tokenizer step \"ByteLevel\" with add_prefix_space true; accepted: false";
  }
  vocabulary.kind = VocabularyKind::byte_level_bpe;
  if (flag(step, "use_regex", true)) {
    vocabulary.words.push_back({.pattern = std::string(gpt2_word_pattern())});
  }
  return std::nullopt;
}

/// The id that a template's special token stands for.
std::optional<TokenId> template_id(const json& processor, const std::string& name,
                                   const Vocabulary& vocabulary) {
  const auto tokens = processor.find("special_tokens");
  if (tokens == processor.end() || !tokens->is_object()) return std::nullopt;
  const auto token = tokens->find(name);
  if (token == tokens->end() || !token->is_object()) return std::nullopt;
  const json ids = token->value("ids", json());
  if (!ids.is_array() || ids.size() != 1 || !ids[0].is_number_unsigned()) return std::nullopt;
  const auto id = ids[0].get<std::uint64_t>();
  if (id >= vocabulary.pieces.size()) return std::nullopt;
  return static_cast<TokenId>(id);
}

Problem read_template(const json& processor, Vocabulary& vocabulary) {
  const json single = processor.value("single", json());
  const char* const accepted =
      "post_processor template; accepted: at most one token of the vocabulary, before the sequence";
  if (!single.is_array() || single.empty() || single.size() > 2) return accepted;
  if (!single.back().is_object() || !single.back().contains("Sequence")) return accepted;
  if (single.size() == 1) return std::nullopt;
  const json first = single[0].is_object() ? single[0].value("SpecialToken", json()) : json();
  if (!first.is_object()) return accepted;
  const auto id = template_id(processor, text(first, "id"), vocabulary);
  if (!id) return accepted;
  vocabulary.bos = id;
  vocabulary.add_bos = true;
  return std::nullopt;
}

}  // namespace

Problem read_normalizer_steps(const json& step, Vocabulary& vocabulary) {
  std::vector<const json*> steps;
  if (auto problem = flatten(step, "normalizer", "normalizers", steps)) return problem;
  for (const json* one : steps) {
    const std::string type = text(*one, "type");
    if (type == "NFC") {
      vocabulary.normalizer.push_back({.kind = NormalizerStep::Kind::nfc});
    } else if (type == "Prepend") {
      vocabulary.normalizer.push_back(
          {.kind = NormalizerStep::Kind::prepend, .from = {}, .to = text(*one, "prepend")});
    } else if (type == "Replace") {
      bool literal = false;
      std::string from = pattern_of(*one, literal);
      if (!literal || from.empty()) {
        return "normalizer step \"Replace\" without a String; accepted: a pattern of type String";
      }
      vocabulary.normalizer.push_back({.kind = NormalizerStep::Kind::replace,
                                       .from = std::move(from),
                                       .to = text(*one, "content")});
    } else {
      return unknown_step("normalizer", *one, "NFC, Prepend, Replace, Sequence");
    }
  }
  return std::nullopt;
}

Problem read_pre_tokenizer(const json& step, Vocabulary& vocabulary) {
  std::vector<const json*> steps;
  if (auto problem = flatten(step, "pre_tokenizer", "pretokenizers", steps)) return problem;
  for (const json* one : steps) {
    if (vocabulary.kind == VocabularyKind::byte_level_bpe) {
      return "a pre_tokenizer step after \"ByteLevel\"; accepted: ByteLevel as the last step";
    }
    const std::string type = text(*one, "type");
    Problem problem;
    if (type == "ByteLevel") {
      problem = add_byte_level(*one, vocabulary);
    } else if (type == "Split") {
      problem = add_split(*one, vocabulary);
    } else if (type == "Metaspace") {
      problem = add_metaspace(*one, vocabulary);
    } else if (type == "Digits") {
      const bool each = flag(*one, "individual_digits", false);
      vocabulary.words.push_back({.pattern = each ? R"(\p{N})" : R"(\p{N}+)"});
    } else {
      problem =
          unknown_step("pre_tokenizer", *one, "ByteLevel, Split, Digits, Metaspace, Sequence");
    }
    if (problem) return problem;
  }
  return std::nullopt;
}

Problem read_post_processor(const json& step, Vocabulary& vocabulary) {
  std::vector<const json*> steps;
  if (auto problem = flatten(step, "post_processor", "processors", steps)) return problem;
  for (const json* one : steps) {
    const std::string type = text(*one, "type");
    if (type == "ByteLevel") continue;  // changes offsets, no ids
    if (type != "TemplateProcessing") {
      return unknown_step("post_processor", *one, "ByteLevel, TemplateProcessing, Sequence");
    }
    if (auto problem = read_template(*one, vocabulary)) return problem;
  }
  return std::nullopt;
}

}  // namespace kvsim
