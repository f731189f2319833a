// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/tokenizer_writer.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/gguf_metadata.h"

namespace kvsim {
namespace {

using Json = nlohmann::ordered_json;

bool is_added(const Piece& piece) {
  return piece.kind == PieceKind::control || piece.kind == PieceKind::user_defined ||
         piece.kind == PieceKind::unknown;
}

Json added_tokens(const Vocabulary& vocabulary) {
  Json added = Json::array();
  for (std::size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const Piece& piece = vocabulary.pieces[id];
    if (!is_added(piece)) continue;
    added.push_back({{"id", id},
                     {"content", piece.text},
                     {"single_word", false},
                     {"lstrip", piece.takes_left_space},
                     {"rstrip", piece.takes_right_space},
                     {"normalized", false},
                     {"special", piece.kind != PieceKind::user_defined}});
  }
  return added;
}

Json split_step(const SplitRule& rule) {
  return {{"type", "Split"},
          {"pattern", {{rule.literal ? "String" : "Regex", rule.pattern}}},
          {"behavior", "Isolated"},
          {"invert", rule.invert}};
}

Json post_processor(const Vocabulary& vocabulary) {
  if (!vocabulary.add_bos || !vocabulary.bos) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", false}};
  }
  const TokenId bos = *vocabulary.bos;
  const std::string& text = vocabulary.pieces[static_cast<std::size_t>(bos)].text;
  const auto special = [&](int type) {
    return Json{{"SpecialToken", {{"id", text}, {"type_id", type}}}};
  };
  const auto sequence = [](const char* name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({special(0), sequence("A", 0)})},
          {"pair", Json::array({special(0), sequence("A", 0), special(1), sequence("B", 1)})},
          {"special_tokens",
           {{text, {{"id", text}, {"ids", Json::array({bos})}, {"tokens", Json::array({text})}}}}}};
}

/// A message of protobuf's wire format.
class Message {
 public:
  void varint(unsigned field, std::uint64_t value) {
    raw_varint(field << 3U);
    raw_varint(value);
  }
  void text(unsigned field, std::string_view value) {
    raw_varint(field << 3U | 2U);
    raw_varint(value.size());
    bytes_ += value;
  }
  void number(unsigned field, float value) {
    raw_varint(field << 3U | 5U);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes_ += static_cast<char>(bits >> shift & 0xffU);
    }
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void raw_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// A token id, where protobuf writes a missing one as −1 in ten bytes.
std::uint64_t wire_id(const std::optional<TokenId>& id) {
  return static_cast<std::uint64_t>(std::int64_t{id.value_or(-1)});
}

Result<std::string> tokenizer_config(const GgufMetadata& metadata, const Vocabulary& vocabulary,
                                     std::string_view class_name, std::string_view source) {
  Json json = Json::object();
  const auto set_token = [&](const char* name, const std::optional<TokenId>& id) {
    if (id) json[name] = vocabulary.pieces[static_cast<std::size_t>(*id)].text;
  };
  json["tokenizer_class"] = class_name;
  json["add_bos_token"] = vocabulary.add_bos;
  json["add_eos_token"] = false;
  set_token("bos_token", vocabulary.bos);
  set_token("eos_token", vocabulary.eos);
  set_token("unk_token", vocabulary.unknown);
  json["clean_up_tokenization_spaces"] = false;
  const auto chat = metadata.text("tokenizer.chat_template");
  if (!chat) return chat.error();
  if (const std::optional<std::string_view> text = *chat) json["chat_template"] = *text;
  try {
    return json.dump(2) + "\n";
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorKind::file,
                 fmt::format("{}: the chat template is not UTF-8; accepted: UTF-8", source)};
  }
}

}  // namespace

Result<std::string> tokenizer_json(const Vocabulary& vocabulary) {
  Json steps = Json::array();
  for (const SplitRule& rule : vocabulary.words) steps.push_back(split_step(rule));
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", false}});
  Json vocab = Json::object();
  Json merges = Json::array();
  // A plain push_back: looking a key up in an ordered object walks all of it.
  auto& members = vocab.get_ref<Json::object_t&>();
  members.reserve(vocabulary.pieces.size());
  for (std::size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const Piece& piece = vocabulary.pieces[id];
    if (!piece.text.empty()) members.push_back({piece.text, Json(id)});
  }
  for (const auto& [left, right] : vocabulary.merges) merges.push_back({left, right});
  Json json = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", added_tokens(vocabulary)},
               {"normalizer", nullptr},
               {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
               {"post_processor", post_processor(vocabulary)},
               {"decoder",
                {{"type", "ByteLevel"},
                 {"add_prefix_space", true},
                 {"trim_offsets", true},
                 {"use_regex", true}}}};
  if (!vocabulary.normalizer.empty()) json["normalizer"] = {{"type", "NFC"}};
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", vocabulary.ignore_merges},
                   {"vocab", std::move(vocab)},
                   {"merges", std::move(merges)}};
  try {
    return json.dump(1) + "\n";
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorKind::file, "a token is not UTF-8; accepted: UTF-8"};
  }
}

// Field numbers: sentencepiece_model.proto of google/sentencepiece.
std::string sentencepiece_model(const Vocabulary& vocabulary) {
  constexpr std::uint64_t bpe = 2;
  Message model;
  for (const Piece& piece : vocabulary.pieces) {
    Message message;
    message.text(1, piece.text);
    message.number(2, piece.score);
    message.varint(3, static_cast<std::uint64_t>(piece.kind));
    model.text(1, message.bytes());
  }
  Message trainer;
  trainer.varint(3, bpe);
  trainer.varint(4, vocabulary.pieces.size());
  trainer.varint(35, 1);  // byte_fallback
  trainer.varint(40, wire_id(vocabulary.unknown));
  trainer.varint(41, wire_id(vocabulary.bos));
  trainer.varint(42, wire_id(vocabulary.eos));
  trainer.varint(43, wire_id(std::nullopt));
  model.text(2, trainer.bytes());
  Message normalizer;
  normalizer.text(1, "identity");
  normalizer.varint(3, vocabulary.space_prefix ? 1 : 0);
  normalizer.varint(4, vocabulary.remove_extra_whitespace ? 1 : 0);
  normalizer.varint(5, 1);  // escape_whitespaces
  model.text(3, normalizer.bytes());
  return model.bytes();
}

Result<std::vector<TextFile>> gguf_tokenizer_files(std::span<const std::byte> bytes,
                                                   std::string_view spm_class,
                                                   std::string_view source) {
  const auto metadata = GgufMetadata::parse(bytes, source);
  if (!metadata) return metadata.error();
  if (metadata->find("tokenizer.ggml.model") == nullptr) return std::vector<TextFile>();
  const Result<Vocabulary> vocabulary = read_gguf_vocabulary(bytes, source);
  if (!vocabulary) return vocabulary.error();
  const bool is_bpe = vocabulary->kind == VocabularyKind::byte_level_bpe;
  std::vector<TextFile> files;
  if (is_bpe) {
    Result<std::string> json = tokenizer_json(*vocabulary);
    if (!json) return Error{ErrorKind::file, fmt::format("{}: {}", source, json.error().message)};
    files.push_back({"tokenizer.json", std::move(*json)});
  } else {
    files.push_back({"tokenizer.model", sentencepiece_model(*vocabulary)});
  }
  Result<std::string> config = tokenizer_config(
      *metadata, *vocabulary, is_bpe ? "PreTrainedTokenizerFast" : spm_class, source);
  if (!config) return config.error();
  files.push_back({"tokenizer_config.json", std::move(*config)});
  return files;
}

}  // namespace kvsim
