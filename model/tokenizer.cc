// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "model/mapped_file.h"
#include "model/quote.h"
#include "model/special_tokens.h"
#include "model/token_encoder.h"
#include "model/tokenizer_config.h"
#include "model/vocabulary.h"

namespace kvsim {

struct Tokenizer::Data {
  VocabularyKind kind = VocabularyKind::sentencepiece;
  std::shared_ptr<const TokenEncoder> encoder;
  SpecialTokens special;
  std::string bytes;  ///< of all tokens, one after the other
  std::vector<std::size_t> ends;
  std::vector<bool> control;
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  bool add_bos = false;
  bool space_prefix = false;
};

namespace {

Error file_error(std::string_view source, std::string_view problem) {
  return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
}

std::string bytes_of(const Piece& piece, VocabularyKind kind) {
  const bool is_text = piece.kind == PieceKind::normal || piece.kind == PieceKind::unused;
  if (kind == VocabularyKind::byte_level_bpe) {
    return is_text ? decode_byte_level(piece.text) : piece.text;
  }
  if (piece.kind == PieceKind::byte) {
    if (const auto byte = byte_of_piece(piece.text)) return {static_cast<char>(*byte)};
  }
  if (is_text || piece.kind == PieceKind::user_defined) {
    return replace_all(piece.text, space_mark, " ");
  }
  return piece.text;
}

std::optional<std::string> problem_of(const Vocabulary& vocabulary) {
  if (vocabulary.pieces.empty() || vocabulary.pieces.size() > TokenizerLimits::tokens) {
    return fmt::format("{} tokens; accepted: 1 to {}", vocabulary.pieces.size(),
                       TokenizerLimits::tokens);
  }
  if (vocabulary.merges.size() > TokenizerLimits::merges) {
    return fmt::format("{} merges; accepted: at most {}", vocabulary.merges.size(),
                       TokenizerLimits::merges);
  }
  for (std::size_t index = 0; index < vocabulary.pieces.size(); ++index) {
    if (vocabulary.pieces[index].text.size() <= TokenizerLimits::token_bytes) continue;
    return fmt::format("token {} has {} bytes; accepted: at most {}", index,
                       vocabulary.pieces[index].text.size(), TokenizerLimits::token_bytes);
  }
  const std::array<std::pair<std::string_view, std::optional<TokenId>>, 3> named = {
      {{"bos", vocabulary.bos}, {"eos", vocabulary.eos}, {"unknown", vocabulary.unknown}}};
  for (const auto& [name, id] : named) {
    if (!id || (*id >= 0 && static_cast<std::size_t>(*id) < vocabulary.pieces.size())) continue;
    return fmt::format("{} token is {}; accepted: 0 to {}", name, *id,
                       vocabulary.pieces.size() - 1);
  }
  if (vocabulary.add_bos && !vocabulary.bos) {
    return "add_bos is true without a bos token; accepted: with one";
  }
  return std::nullopt;
}

Result<std::shared_ptr<const Tokenizer::Data>> make_data(const Vocabulary& vocabulary,
                                                         std::string_view source) {
  if (const auto problem = problem_of(vocabulary)) return file_error(source, *problem);
  const bool is_sentencepiece = vocabulary.kind == VocabularyKind::sentencepiece;
  auto encoder = is_sentencepiece ? make_sentencepiece_encoder(vocabulary, source)
                                  : make_bpe_encoder(vocabulary, source);
  if (!encoder) return encoder.error();
  auto data = std::make_shared<Tokenizer::Data>();
  data->kind = vocabulary.kind;
  data->encoder = std::move(*encoder);
  // libsentencepiece finds user-defined pieces itself, in the text with its spaces marked.
  data->special.take(vocabulary.pieces, !is_sentencepiece);
  for (const Piece& piece : vocabulary.pieces) {
    data->bytes += bytes_of(piece, vocabulary.kind);
    data->ends.push_back(data->bytes.size());
    data->control.push_back(piece.kind == PieceKind::control || piece.kind == PieceKind::unknown);
  }
  data->bos = vocabulary.bos;
  data->eos = vocabulary.eos;
  data->add_bos = vocabulary.add_bos;
  data->space_prefix = is_sentencepiece && vocabulary.space_prefix;
  for (const NormalizerStep& step : vocabulary.normalizer) {
    const bool prepends =
        step.kind != NormalizerStep::Kind::nfc && step.kind != NormalizerStep::Kind::replace;
    if (prepends && (step.to == space_mark || step.to == " ")) data->space_prefix = true;
  }
  return std::shared_ptr<const Tokenizer::Data>(std::move(data));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Vocabulary> read_vocabulary(std::span<const std::byte> bytes, std::string_view source) {
  const std::string_view text = text_of(bytes);
  if (text.starts_with("GGUF")) return read_gguf_vocabulary(bytes, source);
  if (bytes.size() > TokenizerLimits::file_bytes) {
    return file_error(source, fmt::format("has {} bytes; accepted: at most {}", bytes.size(),
                                          TokenizerLimits::file_bytes));
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    return read_tokenizer_json(text, source);
  }
  // A ModelProto begins with a piece, which is field 1 with a length; llama2.c's file with the
  // number of bytes of the longest token as int32.
  if (text.size() > 2 && text[0] == '\n' && text[1] != '\0') {
    return read_sentencepiece_model(bytes, source);
  }
  return read_llama2c_vocabulary(bytes, source);
}

Result<MappedFile> open_if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return MappedFile();
  return MappedFile::open(path.string());
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::span<const std::byte> bytes, std::string_view source) {
  const auto vocabulary = read_vocabulary(bytes, source);
  if (!vocabulary) return vocabulary.error();
  auto data = make_data(*vocabulary, source);
  if (!data) return data.error();
  return Tokenizer(std::move(*data));
}

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path file = path;
  const bool is_folder = fs::is_directory(file, ignored);
  if (is_folder) {
    file /= fs::exists(file / "tokenizer.json", ignored) ? "tokenizer.json" : "tokenizer.model";
    if (!fs::exists(file, ignored)) {
      return file_error(quote_path(path),
                        "has no tokenizer; accepted: a folder with tokenizer.json or "
                        "tokenizer.model");
    }
  }
  const auto mapped = MappedFile::open(file.string());
  if (!mapped) return mapped.error();
  const std::string source = quote_path(file.string());
  auto vocabulary = read_vocabulary(mapped->bytes(), source);
  if (!vocabulary) return vocabulary.error();
  if (is_folder || file.filename() == "tokenizer.json") {
    const fs::path config_path = file.parent_path() / "tokenizer_config.json";
    const auto config = open_if_there(config_path);
    if (!config) return config.error();
    if (!config->bytes().empty()) {
      const auto applied = apply_tokenizer_config(text_of(config->bytes()),
                                                  quote_path(config_path.string()), *vocabulary);
      if (!applied) return applied.error();
    }
  }
  auto data = make_data(*vocabulary, source);
  if (!data) return data.error();
  return Tokenizer(std::move(*data));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  if (text.size() > TokenizerLimits::text_bytes) {
    return Error{ErrorKind::usage, fmt::format("text has {} bytes; accepted: at most {}",
                                               text.size(), TokenizerLimits::text_bytes)};
  }
  if (const std::size_t valid = valid_utf8_bytes(text); valid != text.size()) {
    return Error{ErrorKind::usage,
                 fmt::format("text {}: byte {} is 0x{:02x}, which is not UTF-8; accepted: UTF-8",
                             quote(text), valid, static_cast<unsigned char>(text[valid]))};
  }
  std::vector<TokenId> ids;
  if (options.add_bos.value_or(data_->add_bos)) {
    const std::optional<TokenId> bos = data_->bos;
    if (!bos) {
      return Error{ErrorKind::usage,
                   "add_bos is true and the vocabulary has no bos token; accepted: false"};
    }
    ids.push_back(*bos);
  }
  for (const SpecialTokens::Part& part : data_->special.split(text, options.special_tokens)) {
    if (part.token) {
      ids.push_back(*part.token);
      continue;
    }
    const auto done = data_->encoder->encode(part.text, part.text.data() == text.data(), ids);
    if (!done) return done.error();
  }
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool special_tokens) const {
  std::string text;
  bool at_start = true;
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      return Error{ErrorKind::usage,
                   fmt::format("token id {}; accepted: 0 to {}", id, vocabulary_size() - 1)};
    }
    if (is_control(id)) {
      if (special_tokens) text += token_bytes(id);
      continue;
    }
    std::string_view bytes = token_bytes(id);
    if (at_start && data_->space_prefix && bytes.starts_with(' ')) bytes.remove_prefix(1);
    at_start = false;
    text += bytes;
  }
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  const auto index = static_cast<std::size_t>(id);
  const std::size_t begin = index == 0 ? 0 : data_->ends[index - 1];
  return std::string_view(data_->bytes).substr(begin, data_->ends[index] - begin);
}

bool Tokenizer::is_control(TokenId id) const {
  return data_->control[static_cast<std::size_t>(id)];
}

std::optional<TokenId> Tokenizer::find_special(std::string_view name) const {
  return data_->special.find(name);
}

std::int64_t Tokenizer::vocabulary_size() const {
  return static_cast<std::int64_t>(data_->ends.size());
}

std::optional<TokenId> Tokenizer::bos() const { return data_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return data_->eos; }
bool Tokenizer::adds_bos() const { return data_->add_bos; }

std::string_view Tokenizer::kind() const {
  switch (data_->kind) {
    case VocabularyKind::sentencepiece:
      return "SentencePiece";
    case VocabularyKind::byte_level_bpe:
      return "byte-level BPE";
    case VocabularyKind::character_bpe:
      break;
  }
  return "BPE on characters";
}

}  // namespace kvsim
