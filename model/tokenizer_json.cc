// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The tokenizer.json of Hugging Face's tokenizers library. The vocabulary and the merges are read
// into flat lists as they come; only the rest becomes a tree.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/json_tree.h"
#include "model/quote.h"
#include "model/tokenizer_json_steps.h"
#include "model/vocabulary.h"

namespace kvsim {
namespace {

using nlohmann::json;
using Problem = std::optional<std::string>;

/// Keeps model.vocab and model.merges out of the tree.
class TokenizerJsonBuilder : public JsonTreeBuilder {
 public:
  std::vector<std::pair<std::string, std::uint64_t>> tokens;
  std::vector<std::pair<std::string, std::string>> merges;

  bool start_object(std::size_t size) override {
    if (table_ != Table::none) return unexpected("an object");
    if (depth() == 1) in_model_ = next_key() == "model";
    if (at_table("vocab")) {
      table_ = Table::vocab;
      return true;
    }
    return JsonTreeBuilder::start_object(size);
  }
  bool end_object() override {
    if (table_ == Table::none) return JsonTreeBuilder::end_object();
    table_ = Table::none;
    return true;
  }
  bool start_array(std::size_t size) override {
    if (table_ == Table::merges) {
      table_ = Table::pair;
      parts_ = 0;
      return true;
    }
    if (table_ != Table::none) return unexpected("an array");
    if (at_table("merges")) {
      table_ = Table::merges;
      return true;
    }
    if (depth() == 1) in_model_ = false;
    return JsonTreeBuilder::start_array(size);
  }
  bool end_array() override {
    if (table_ == Table::none) return JsonTreeBuilder::end_array();
    if (table_ == Table::pair && parts_ != 2) {
      return refuse(fmt::format("merge {} has {} parts; accepted: 2", merges.size(), parts_));
    }
    if (table_ == Table::pair) merges.push_back(std::exchange(pair_, {}));
    table_ = table_ == Table::pair ? Table::merges : Table::none;
    return merges.size() <= TokenizerLimits::merges ||
           refuse(
               fmt::format("more than {} merges; accepted: at most that", TokenizerLimits::merges));
  }
  bool key(string_t& name) override {
    if (table_ != Table::vocab) return JsonTreeBuilder::key(name);
    if (tokens.size() >= TokenizerLimits::tokens || name.size() > TokenizerLimits::token_bytes) {
      return refuse(
          fmt::format("more than {} tokens, or one of more than {} bytes; accepted: at most that",
                      TokenizerLimits::tokens, TokenizerLimits::token_bytes));
    }
    tokens.emplace_back(std::string(name), 0);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (table_ == Table::none) return JsonTreeBuilder::number_unsigned(value);
    if (table_ != Table::vocab) return unexpected("a number");
    tokens.back().second = value;
    return true;
  }
  bool string(string_t& value) override {
    if (table_ == Table::none) return JsonTreeBuilder::string(value);
    if (table_ == Table::vocab) return unexpected("a text");
    if (table_ == Table::pair) {
      if (parts_ < 2) (parts_ == 0 ? pair_.first : pair_.second).assign(value);
      ++parts_;
      return true;
    }
    const std::size_t space = value.find(' ', 1);
    if (value.empty() || space == std::string::npos || merges.size() >= TokenizerLimits::merges) {
      return refuse(
          fmt::format("merge {} is {}; accepted: two texts with a space between, at most "
                      "{} merges",
                      merges.size(), quote(value), TokenizerLimits::merges));
    }
    merges.emplace_back(value.substr(0, space), value.substr(space + 1));
    return true;
  }
  bool null() override { return plain("null") && JsonTreeBuilder::null(); }
  bool boolean(bool value) override { return plain("a bool") && JsonTreeBuilder::boolean(value); }
  bool number_integer(number_integer_t value) override {
    return plain("a negative number") && JsonTreeBuilder::number_integer(value);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return plain("a fraction") && JsonTreeBuilder::number_float(value, text);
  }

 private:
  enum class Table { none, vocab, merges, pair };

  bool at_table(std::string_view name) const {
    return depth() == 2 && in_model_ && next_key() == name;
  }
  bool plain(std::string_view what) { return table_ == Table::none || unexpected(what); }
  bool unexpected(std::string_view what) {
    return refuse(fmt::format("model.{} holds {}; accepted: {}",
                              table_ == Table::vocab ? "vocab" : "merges", what,
                              table_ == Table::vocab ? "a whole number for each token (of a BPE)"
                                                     : "texts, or arrays of two texts"));
  }

  Table table_ = Table::none;
  bool in_model_ = false;
  int parts_ = 0;
  std::pair<std::string, std::string> pair_;
};

Problem place(std::string_view text, std::uint64_t id, Vocabulary& vocabulary) {
  if (id >= TokenizerLimits::tokens) {
    return fmt::format("token {} has id {}; accepted: 0 to {}", quote(text), id,
                       TokenizerLimits::tokens - 1);
  }
  if (vocabulary.pieces.size() <= id) {
    vocabulary.pieces.resize(id + 1, Piece{.kind = PieceKind::unused});
  }
  Piece& piece = vocabulary.pieces[id];
  if (!piece.text.empty() && piece.text != text) {
    return fmt::format("tokens {} and {} have the same id {}; accepted: one token for each",
                       quote(piece.text), quote(text), id);
  }
  if (piece.text.empty()) {
    piece.text = text;
    piece.kind = PieceKind::normal;
  }
  return std::nullopt;
}

Problem read_added(const json& root, Vocabulary& vocabulary) {
  const auto found = root.find("added_tokens");
  if (found == root.end() || found->is_null()) return std::nullopt;
  if (!found->is_array()) return "added_tokens is no array; accepted: an array of objects";
  for (const json& token : *found) {
    const auto flag = [&](const char* name) { return token.value(name, json()) == json(true); };
    const bool is_token = token.is_object() && token.contains("content") &&
                          token["content"].is_string() && token.contains("id") &&
                          token["id"].is_number_unsigned();
    if (!is_token || token["content"].get_ref<const std::string&>().empty()) {
      return "an added token has no content or no id; accepted: a text and a whole number";
    }
    const auto& text = token["content"].get_ref<const std::string&>();
    const auto id = token["id"].get<std::uint64_t>();
    if (text.size() > TokenizerLimits::token_bytes) {
      return fmt::format("added token {} has {} bytes; accepted: at most {}", id, text.size(),
                         TokenizerLimits::token_bytes);
    }
    if (flag("single_word")) {
      return fmt::format("added token {} has single_word true; accepted: false", quote(text));
    }
    if (const auto problem = place(text, id, vocabulary)) return problem;
    Piece& piece = vocabulary.pieces[id];
    piece.kind = flag("special") ? PieceKind::control : PieceKind::user_defined;
    piece.takes_left_space = flag("lstrip");
    piece.takes_right_space = flag("rstrip");
  }
  return std::nullopt;
}

Problem read_model(const json& model, Vocabulary& vocabulary) {
  // Files of the library's first years name no type.
  if (const json type = model.value("type", json("BPE")); type != "BPE") {
    return fmt::format("model.type is {}; accepted: \"BPE\"",
                       type.is_string() ? quote(type.get_ref<const std::string&>()) : "no text");
  }
  constexpr std::array<const char*, 2> affixes = {"continuing_subword_prefix",
                                                  "end_of_word_suffix"};
  for (const char* affix : affixes) {
    const json value = model.value(affix, json());
    const bool is_set =
        !value.is_null() && !(value.is_string() && value.get_ref<const std::string&>().empty());
    if (is_set) {
      return fmt::format("model.{} is set; accepted: null", affix);
    }
  }
  const auto flag = [&](const char* name) { return model.value(name, json()) == json(true); };
  vocabulary.byte_fallback = flag("byte_fallback");
  vocabulary.ignore_merges = flag("ignore_merges");
  vocabulary.fuse_unknown = flag("fuse_unk");
  const json unknown = model.value("unk_token", json());
  if (!unknown.is_string()) return std::nullopt;
  const auto& text = unknown.get_ref<const std::string&>();
  for (std::size_t index = 0; index < vocabulary.pieces.size(); ++index) {
    if (vocabulary.pieces[index].text != text) continue;
    vocabulary.unknown = static_cast<TokenId>(index);
    return std::nullopt;
  }
  return fmt::format("model.unk_token is {}; accepted: a token of the vocabulary", quote(text));
}

/// Everything behind the parser; what is wrong, or nothing.
Problem assemble(TokenizerJsonBuilder& builder, Vocabulary& vocabulary) {
  const json& root = builder.root();
  const auto model = root.find("model");
  if (model == root.end() || !model->is_object() || builder.tokens.empty()) {
    return "model.vocab is missing; accepted: a tokenizer of type BPE";
  }
  for (const auto& [text, id] : builder.tokens) {
    if (text.empty()) return "model.vocab has an empty token; accepted: at least one byte";
    if (const auto problem = place(text, id, vocabulary)) return problem;
  }
  vocabulary.merges = std::move(builder.merges);
  vocabulary.kind = VocabularyKind::character_bpe;
  if (auto problem = read_added(root, vocabulary)) return problem;
  if (auto problem = read_model(*model, vocabulary)) return problem;
  if (auto problem = read_normalizer_steps(root.value("normalizer", json()), vocabulary)) {
    return problem;
  }
  if (auto problem = read_pre_tokenizer(root.value("pre_tokenizer", json()), vocabulary)) {
    return problem;
  }
  if (auto problem = read_post_processor(root.value("post_processor", json()), vocabulary)) {
    return problem;
  }
  if (!vocabulary.byte_fallback || vocabulary.kind != VocabularyKind::character_bpe) {
    return std::nullopt;
  }
  for (Piece& piece : vocabulary.pieces) {
    if (piece.kind == PieceKind::normal && byte_of_piece(piece.text)) piece.kind = PieceKind::byte;
  }
  return std::nullopt;
}

}  // namespace

Result<Vocabulary> read_tokenizer_json(std::string_view text, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  TokenizerJsonBuilder builder;
  if (const auto problem = build_json_tree(text, builder)) return fail(*problem);
  Vocabulary vocabulary;
  if (const auto problem = assemble(builder, vocabulary)) return fail(*problem);
  return vocabulary;
}

}  // namespace kvsim
