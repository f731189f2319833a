// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "model/gguf_metadata.h"
#include "model/quote.h"
#include "model/vocabulary.h"
#include "model/word_splitter.h"

namespace kvsim {
namespace {

constexpr std::string_view prefix = "tokenizer.ggml.";

class GgufVocabulary {
 public:
  GgufVocabulary(const GgufMetadata& metadata, std::string_view source)
      : metadata_(metadata), source_(source) {}

  [[nodiscard]] Result<Vocabulary> read();

 private:
  [[nodiscard]] Error fail(std::string_view problem) const {
    return Error{ErrorKind::file, fmt::format("{}: {}", source_, problem)};
  }
  [[nodiscard]] static std::string key(std::string_view name) {
    return std::string(prefix).append(name);
  }
  [[nodiscard]] std::optional<Error> read_kind();
  [[nodiscard]] std::optional<Error> read_pieces();
  [[nodiscard]] std::optional<Error> read_merges();
  [[nodiscard]] std::optional<Error> read_id(std::string_view name, std::optional<TokenId>& id);
  void mark_unknown();
  [[nodiscard]] std::optional<Error> read_flag(std::string_view name, bool& flag);
  /// Reads an array of numbers with as many items as there are tokens; null if it is missing.
  [[nodiscard]] Result<const GgufArray*> per_token(std::string_view name, GgufType item);

  const GgufMetadata& metadata_;
  std::string_view source_;
  Vocabulary vocabulary_;
};

std::optional<Error> GgufVocabulary::read_kind() {
  const auto model = metadata_.text(key("model"));
  if (!model) return model.error();
  const std::string_view name = model->value_or("");
  if (name == "llama") {
    vocabulary_.kind = VocabularyKind::sentencepiece;
    vocabulary_.add_bos = true;
    return std::nullopt;
  }
  if (name != "gpt2") {
    return fail(
        fmt::format("{} is {}; accepted: \"llama\" (SentencePiece) and \"gpt2\" "
                    "(byte-level BPE)",
                    key("model"), *model ? quote(name) : "missing"));
  }
  vocabulary_.kind = VocabularyKind::byte_level_bpe;
  const auto pre = metadata_.text(key("pre"));
  if (!pre) return pre.error();
  const WordRules* rules = find_word_rules(pre->value_or(""));
  if (rules == nullptr) {
    std::string names;
    for (const WordRules& row : word_rules()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    }
    return fail(fmt::format("{} is {}; accepted: {}", key("pre"),
                            *pre ? quote(pre->value_or("")) : "missing", names));
  }
  vocabulary_.words = rules->rules;
  vocabulary_.ignore_merges = rules->ignore_merges;
  vocabulary_.add_bos = rules->add_bos;
  if (rules->nfc) vocabulary_.normalizer = {{.kind = NormalizerStep::Kind::nfc}};
  return std::nullopt;
}

Result<const GgufArray*> GgufVocabulary::per_token(std::string_view name, GgufType item) {
  auto array = metadata_.array(key(name), item);
  if (!array || *array == nullptr) return array;
  if ((*array)->size != vocabulary_.pieces.size()) {
    return fail(fmt::format("{} has {} items; accepted: {}, one for each token", key(name),
                            (*array)->size, vocabulary_.pieces.size()));
  }
  return array;
}

std::optional<Error> GgufVocabulary::read_pieces() {
  const auto tokens = metadata_.array(key("tokens"), GgufType::text);
  if (!tokens) return tokens.error();
  if (*tokens == nullptr || (*tokens)->size > TokenizerLimits::tokens) {
    return fail(fmt::format(
        "{} {}; accepted: 1 to {} texts", key("tokens"),
        *tokens == nullptr ? "is missing" : fmt::format("has {} items", (*tokens)->size),
        TokenizerLimits::tokens));
  }
  for (const std::string_view text : (*tokens)->texts) {
    vocabulary_.pieces.push_back({.text = std::string(text)});
  }
  const auto kinds = per_token("token_type", GgufType::int32);
  if (!kinds) return kinds.error();
  const auto scores = per_token("scores", GgufType::float32);
  if (!scores) return scores.error();
  const bool needs_scores = vocabulary_.kind == VocabularyKind::sentencepiece;
  if (needs_scores && (*kinds == nullptr || *scores == nullptr)) {
    return fail(fmt::format("{} is missing; accepted: a vocabulary with scores and types",
                            key(*scores == nullptr ? "scores" : "token_type")));
  }
  for (std::size_t index = 0; index < vocabulary_.pieces.size(); ++index) {
    Piece& piece = vocabulary_.pieces[index];
    if (needs_scores) std::memcpy(&piece.score, (*scores)->numbers.data() + index * 4, 4);
    if (*kinds == nullptr) continue;
    std::int32_t kind = 0;
    std::memcpy(&kind, (*kinds)->numbers.data() + index * 4, 4);
    if (kind < 1 || kind > 6) {
      return fail(fmt::format("token {} has type {}; accepted: 1 to 6", index, kind));
    }
    piece.kind = static_cast<PieceKind>(kind);
  }
  return std::nullopt;
}

std::optional<Error> GgufVocabulary::read_merges() {
  const auto merges = metadata_.array(key("merges"), GgufType::text);
  if (!merges) return merges.error();
  if (*merges == nullptr) return fail(key("merges") + " is missing; accepted: an array of texts");
  for (const std::string_view merge : (*merges)->texts) {
    // The first part has at least one byte, and byte-level spellings hold no space.
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return fail(fmt::format("merge {}; accepted: two texts with a space between", quote(merge)));
    }
    vocabulary_.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return std::nullopt;
}

std::optional<Error> GgufVocabulary::read_id(std::string_view name, std::optional<TokenId>& id) {
  const auto value = metadata_.whole(key(name));
  if (!value) return value.error();
  const std::optional<std::int64_t> number = *value;
  if (!number) return std::nullopt;
  if (*number < 0 || *number >= static_cast<std::int64_t>(vocabulary_.pieces.size())) {
    return fail(fmt::format("{} is {}; accepted: 0 to {}", key(name), *number,
                            vocabulary_.pieces.size() - 1));
  }
  id = static_cast<TokenId>(*number);
  return std::nullopt;
}

std::optional<Error> GgufVocabulary::read_flag(std::string_view name, bool& flag) {
  const auto value = metadata_.boolean(key(name));
  if (!value) return value.error();
  flag = value->value_or(flag);
  return std::nullopt;
}

/// Some converters give the unknown token the type of control tokens and name its id only.
void GgufVocabulary::mark_unknown() {
  const auto is_unknown = [](const Piece& piece) { return piece.kind == PieceKind::unknown; };
  const std::optional<TokenId> id = vocabulary_.unknown;
  if (!id || std::ranges::any_of(vocabulary_.pieces, is_unknown)) return;
  Piece& piece = vocabulary_.pieces[static_cast<std::size_t>(*id)];
  if (piece.kind == PieceKind::control) piece.kind = PieceKind::unknown;
}

Result<Vocabulary> GgufVocabulary::read() {
  if (auto error = read_kind()) return *error;
  const bool is_bpe = vocabulary_.kind == VocabularyKind::byte_level_bpe;
  if (auto error = read_pieces()) return *error;
  if (is_bpe) {
    if (auto error = read_merges()) return *error;
  }
  if (auto error = read_id("bos_token_id", vocabulary_.bos)) return *error;
  if (auto error = read_id("eos_token_id", vocabulary_.eos)) return *error;
  if (!is_bpe) {
    if (auto error = read_id("unknown_token_id", vocabulary_.unknown)) return *error;
    mark_unknown();
  }
  vocabulary_.add_bos = vocabulary_.add_bos && vocabulary_.bos.has_value();
  if (auto error = read_flag("add_bos_token", vocabulary_.add_bos)) return *error;
  if (auto error = read_flag("add_space_prefix", vocabulary_.space_prefix)) return *error;
  if (auto error = read_flag("remove_extra_whitespaces", vocabulary_.remove_extra_whitespace)) {
    return *error;
  }
  return std::move(vocabulary_);
}

}  // namespace

Result<Vocabulary> read_gguf_vocabulary(std::span<const std::byte> bytes, std::string_view source) {
  const auto metadata = GgufMetadata::parse(bytes, source);
  if (!metadata) return metadata.error();
  return GgufVocabulary(*metadata, source).read();
}

}  // namespace kvsim
