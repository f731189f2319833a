// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// libsentencepiece sees only ModelProtos that are written here from a checked vocabulary, never
// bytes of a file. Field numbers: sentencepiece_model.proto of google/sentencepiece.
#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <utility>

#include "model/quote.h"
#include "model/token_encoder.h"

namespace kvsim {
namespace {

enum WireType : std::uint8_t { varint = 0, bytes = 2, fixed32 = 5 };

/// A message of the protobuf wire format.
class Message {
 public:
  void add_number(unsigned field, std::uint64_t value) {
    add_varint((field << 3U) | varint);
    add_varint(value);
  }
  void add_float(unsigned field, float value) {
    add_varint((field << 3U) | fixed32);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) text_ += static_cast<char>(bits >> shift);
  }
  void add_text(unsigned field, std::string_view value) {
    add_varint((field << 3U) | bytes);
    add_varint(value.size());
    text_ += value;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) text_ += static_cast<char>(value | 0x80U);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

std::string model_proto(const Vocabulary& vocabulary, bool byte_fallback) {
  Message model;
  for (const Piece& piece : vocabulary.pieces) {
    Message message;
    message.add_text(1, piece.text);
    message.add_float(2, piece.score);
    message.add_number(3, static_cast<std::uint64_t>(piece.kind));
    model.add_text(1, message.text());
  }
  constexpr auto none = ~std::uint64_t{0};  // -1
  const auto id = [&](std::optional<TokenId> token) {
    return token ? static_cast<std::uint64_t>(*token) : none;
  };
  constexpr std::uint64_t bpe = 2;
  Message trainer;
  trainer.add_number(3, bpe);
  trainer.add_number(35, byte_fallback ? 1 : 0);
  trainer.add_number(40, id(vocabulary.unknown));
  trainer.add_number(41, id(vocabulary.bos));
  trainer.add_number(42, id(vocabulary.eos));
  trainer.add_number(43, none);
  model.add_text(2, trainer.text());
  Message normalizer;
  normalizer.add_text(1, "identity");
  normalizer.add_number(3, vocabulary.space_prefix ? 1 : 0);
  normalizer.add_number(4, vocabulary.remove_extra_whitespace ? 1 : 0);
  normalizer.add_number(5, 1);
  model.add_text(3, normalizer.text());
  return model.text();
}

/// What libsentencepiece would refuse or not survive; nothing if it will take the vocabulary.
/// `byte_pieces` is how many byte pieces there are.
std::optional<std::string> problem_of(const Vocabulary& vocabulary, std::size_t& byte_pieces) {
  std::set<std::string_view> seen;
  std::array<bool, 256> has_byte = {};
  std::size_t unknown = 0;
  for (std::size_t index = 0; index < vocabulary.pieces.size(); ++index) {
    const Piece& piece = vocabulary.pieces[index];
    const std::string where = fmt::format("token {} {}", index, quote(piece.text));
    if (piece.text.empty()) return where + " is empty; accepted: at least one byte";
    if (!std::isfinite(piece.score))
      return where +
             " has a score that is not finite; accepted: "
             "finite numbers";
    if (piece.text.find('\0') != std::string::npos) {
      return where + " holds a zero byte; accepted: texts without";
    }
    if (!seen.insert(piece.text).second) return where + " stands twice; accepted: once";
    if (piece.kind == PieceKind::unknown) ++unknown;
    if (piece.kind != PieceKind::byte) continue;
    const auto byte = byte_of_piece(piece.text);
    if (!byte || has_byte[*byte]) {
      return where + " is a byte token; accepted: <0x00> to <0xFF>, each once";
    }
    has_byte[*byte] = true;
    ++byte_pieces;
  }
  if (unknown != 1) {
    return fmt::format("{} tokens of type unknown; accepted: exactly 1", unknown);
  }
  if (byte_pieces != 0 && byte_pieces != 256) {
    return fmt::format("{} byte tokens; accepted: 256 or none", byte_pieces);
  }
  return std::nullopt;
}

class SentencePieceEncoder : public TokenEncoder {
 public:
  [[nodiscard]] std::optional<std::string> load(const std::string& proto) {
    try {
      const auto status = processor_.LoadFromSerializedProto(proto);
      if (!status.ok()) return status.ToString();
    } catch (const std::exception& failure) {
      return failure.what();
    }
    return std::nullopt;
  }

  [[nodiscard]] Result<bool> encode(std::string_view part, bool /*at_start*/,
                                    std::vector<TokenId>& ids) const override {
    std::vector<int> found;
    std::string problem;
    try {
      const auto status = processor_.Encode(part, &found);
      if (!status.ok()) problem = status.ToString();
    } catch (const std::exception& failure) {
      problem = failure.what();
    }
    if (!problem.empty()) {
      return Error{ErrorKind::usage, fmt::format("text {}: {}; accepted: UTF-8 text", quote(part),
                                                 quote(problem, 200))};
    }
    ids.insert(ids.end(), found.begin(), found.end());
    return true;
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

Result<std::shared_ptr<const TokenEncoder>> make_sentencepiece_encoder(const Vocabulary& vocabulary,
                                                                       std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  std::size_t byte_pieces = 0;
  if (const auto problem = problem_of(vocabulary, byte_pieces)) return fail(*problem);
  auto encoder = std::make_shared<SentencePieceEncoder>();
  if (const auto problem = encoder->load(model_proto(vocabulary, byte_pieces == 256))) {
    return fail(
        fmt::format("libsentencepiece refuses it ({}); accepted: a vocabulary that it loads",
                    quote(*problem, 200)));
  }
  return std::shared_ptr<const TokenEncoder>(std::move(encoder));
}

}  // namespace kvsim
