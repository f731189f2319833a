// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// A SentencePiece tokenizer.model: a ModelProto in the protobuf wire format, of which only the
// fields that change ids are read. Field numbers: sentencepiece_model.proto of
// google/sentencepiece.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/quote.h"
#include "model/vocabulary.h"

namespace kvsim {
namespace {

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;                ///< of a varint or fixed value
  std::span<const std::byte> bytes = {};  ///< of a text or message
  unsigned wire_type = 0;
};

/// Takes the fields of one message from front to back.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// False at the end or at broken data, which broken() tells.
  bool next(Field& field) {
    std::uint64_t tag = 0;
    if (at_ == bytes_.size() || !read_varint(tag)) return false;
    field.number = tag >> 3U;
    field.wire_type = static_cast<unsigned>(tag & 7U);
    field.bytes = {};
    switch (field.wire_type) {
      case 0:
        return read_varint(field.value);
      case 1:
        return read_fixed(8, field.value);
      case 5:
        return read_fixed(4, field.value);
      case 2: {
        std::uint64_t length = 0;
        if (!read_varint(length)) return false;
        broken_ = length > bytes_.size() - at_;
        if (broken_) return false;
        field.bytes = bytes_.subspan(at_, length);
        at_ += length;
        return true;
      }
      default:
        broken_ = true;
        return false;
    }
  }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  bool read_varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7fU) << shift;
      if (byte < 0x80) return true;
    }
    broken_ = true;
    return false;
  }
  bool read_fixed(std::size_t size, std::uint64_t& value) {
    broken_ = size > bytes_.size() - at_;
    if (broken_) return false;
    value = 0;
    std::memcpy(&value, bytes_.data() + at_, size);  // little-endian
    at_ += size;
    return true;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Each returns what is wrong, or nothing.
using Problem = std::optional<std::string>;

Problem read_piece(std::span<const std::byte> message, Vocabulary& vocabulary) {
  const std::size_t index = vocabulary.pieces.size();
  if (index == TokenizerLimits::tokens) {
    return fmt::format("more than {} pieces; accepted: at most that", index);
  }
  Piece& piece = vocabulary.pieces.emplace_back();
  FieldReader fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1 && field.wire_type == 2) piece.text = text_of(field.bytes);
    if (field.number == 2 && field.wire_type == 5) std::memcpy(&piece.score, &field.value, 4);
    if (field.number != 3 || field.wire_type != 0) continue;
    if (field.value < 1 || field.value > 6) {
      return fmt::format("piece {} has type {}; accepted: 1 to 6", index, field.value);
    }
    piece.kind = static_cast<PieceKind>(field.value);
  }
  if (fields.broken()) return fmt::format("piece {} is broken off; accepted: a ModelProto", index);
  return std::nullopt;
}

Problem read_trainer(std::span<const std::byte> message, Vocabulary& vocabulary) {
  constexpr std::uint64_t bpe = 2;
  std::uint64_t model_type = 1;  // unigram, where the field is missing
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  const auto id = [](std::uint64_t value) {
    const auto number = static_cast<std::int64_t>(value);
    // -1: none. Anything that is no token is refused when the ids are checked.
    if (number < 0) return std::optional<TokenId>();
    return std::optional(static_cast<TokenId>(std::min<std::int64_t>(number, 0x7fffffff)));
  };
  FieldReader fields(message);
  for (Field field; fields.next(field);) {
    if (field.wire_type != 0) continue;
    if (field.number == 3) model_type = field.value;
    if (field.number == 24 && field.value != 0) {
      return "treat_whitespace_as_suffix is true; accepted: false";
    }
    if (field.number == 40) vocabulary.unknown = id(field.value);
    if (field.number == 41) vocabulary.bos = id(field.value);
    if (field.number == 42) vocabulary.eos = id(field.value);
  }
  if (fields.broken()) return "the trainer's part is broken off; accepted: a ModelProto";
  if (model_type != bpe) {
    return fmt::format("model type is {}; accepted: {} (BPE: Llama, Mistral, Gemma)", model_type,
                       bpe);
  }
  return std::nullopt;
}

Problem read_normalizer(std::span<const std::byte> message, Vocabulary& vocabulary) {
  vocabulary.remove_extra_whitespace = true;  // where the field is missing
  FieldReader fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 2 && !field.bytes.empty()) {
      return fmt::format(
          "the normalizer has a character map of {} bytes; accepted: none (\"identity\")",
          field.bytes.size());
    }
    if (field.wire_type != 0) continue;
    if (field.number == 3) vocabulary.space_prefix = field.value != 0;
    if (field.number == 4) vocabulary.remove_extra_whitespace = field.value != 0;
    if (field.number == 5 && field.value == 0) return "escape_whitespaces is false; accepted: true";
  }
  if (fields.broken()) return "the normalizer's part is broken off; accepted: a ModelProto";
  return std::nullopt;
}

}  // namespace

Result<Vocabulary> read_sentencepiece_model(std::span<const std::byte> bytes,
                                            std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  Vocabulary vocabulary;
  bool has_trainer = false;
  bool has_normalizer = false;
  FieldReader fields(bytes);
  for (Field field; fields.next(field);) {
    if (field.wire_type != 2) continue;
    Problem problem;
    if (field.number == 1) problem = read_piece(field.bytes, vocabulary);
    if (field.number == 2) {
      problem = has_trainer ? Problem("two trainer parts; accepted: one")
                            : read_trainer(field.bytes, vocabulary);
      has_trainer = true;
    }
    if (field.number == 3) {
      problem = has_normalizer ? Problem("two normalizer parts; accepted: one")
                               : read_normalizer(field.bytes, vocabulary);
      has_normalizer = true;
    }
    if (problem) return fail(*problem);
  }
  if (fields.broken() || !has_trainer || !has_normalizer) {
    return fail(
        fmt::format("is {}; accepted: a SentencePiece ModelProto with pieces, trainer and "
                    "normalizer",
                    fields.broken() ? "broken off" : "incomplete"));
  }
  vocabulary.add_bos = vocabulary.bos.has_value();
  return vocabulary;
}

}  // namespace kvsim
