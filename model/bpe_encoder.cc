// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Byte-pair encoding: of all neighbouring pairs that have a merge, the one that stands first in the
// list of merges is joined, the leftmost of equals, until none has.
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "model/quote.h"
#include "model/token_encoder.h"
#include "model/word_splitter.h"

namespace kvsim {
namespace {

constexpr TokenId no_token = -1;

using TokenMap = std::map<std::string, TokenId, std::less<>>;

struct Merge {
  std::uint64_t pair = 0;  ///< both ids
  std::uint32_t rank = 0;
  TokenId result = no_token;

  friend auto operator<=>(const Merge&, const Merge&) = default;
};

class BpeEncoder : public TokenEncoder {
 public:
  /// What is wrong with the vocabulary, or nothing.
  [[nodiscard]] std::optional<std::string> take(const Vocabulary& vocabulary);
  void set_splitter(WordSplitter splitter) { splitter_ = std::move(splitter); }

  [[nodiscard]] Result<bool> encode(std::string_view part, bool at_start,
                                    std::vector<TokenId>& ids) const override;

 private:
  [[nodiscard]] std::optional<std::string> take_merges(const Vocabulary& vocabulary);
  [[nodiscard]] Result<std::string> normalize(std::string_view part, bool at_start) const;
  [[nodiscard]] std::optional<Error> add_symbols(std::string_view word,
                                                 std::vector<TokenId>& symbols) const;
  void merge(std::vector<TokenId>& symbols) const;
  [[nodiscard]] const Merge* find_merge(TokenId left, TokenId right) const {
    const std::uint64_t pair = pair_key(left, right);
    const auto found = std::ranges::lower_bound(merges_, pair, {}, &Merge::pair);
    return found == merges_.end() || found->pair != pair ? nullptr : &*found;
  }
  static std::uint64_t pair_key(TokenId left, TokenId right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) |
           static_cast<std::uint32_t>(right);
  }

  bool byte_level_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  bool fuse_unknown_ = false;
  TokenId unknown_ = no_token;
  std::array<TokenId, 256> bytes_ = {};  ///< byte level: the byte; else the fallback
  TokenMap tokens_;                      ///< by the file's spelling
  std::vector<Merge> merges_;            ///< by pair
  std::vector<NormalizerStep> normalizer_;
  WordSplitter splitter_;
};

std::optional<std::string> BpeEncoder::take_merges(const Vocabulary& vocabulary) {
  merges_.reserve(vocabulary.merges.size());
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto& [left, right] = vocabulary.merges[rank];
    const auto first = tokens_.find(left);
    const auto second = tokens_.find(right);
    const auto both = tokens_.find(left + right);
    if (first == tokens_.end() || second == tokens_.end() || both == tokens_.end()) {
      return fmt::format("merge {} of {} and {}: a part or the whole is no token; accepted: tokens",
                         rank, quote(left), quote(right));
    }
    merges_.push_back({.pair = pair_key(first->second, second->second),
                       .rank = static_cast<std::uint32_t>(rank),
                       .result = both->second});
  }
  // Of a pair that stands twice, the earlier rank counts: it is found first.
  std::ranges::sort(merges_);
  return std::nullopt;
}

std::optional<std::string> BpeEncoder::take(const Vocabulary& vocabulary) {
  byte_level_ = vocabulary.kind == VocabularyKind::byte_level_bpe;
  byte_fallback_ = vocabulary.byte_fallback;
  ignore_merges_ = vocabulary.ignore_merges;
  fuse_unknown_ = vocabulary.fuse_unknown;
  unknown_ = vocabulary.unknown.value_or(no_token);
  normalizer_ = vocabulary.normalizer;
  for (std::size_t index = 0; index < vocabulary.pieces.size(); ++index) {
    const Piece& piece = vocabulary.pieces[index];
    if (piece.kind == PieceKind::unused && piece.text.empty()) continue;  // an id without a token
    const auto [place, is_new] = tokens_.emplace(piece.text, static_cast<TokenId>(index));
    if (!is_new) {
      return fmt::format("tokens {} and {} are both {}; accepted: each text once", place->second,
                         index, quote(piece.text));
    }
  }
  for (unsigned byte = 0; byte < bytes_.size(); ++byte) {
    const auto found =
        tokens_.find(byte_level_ ? byte_level_spelling(static_cast<unsigned char>(byte))
                                 : fmt::format("<0x{:02X}>", byte));
    bytes_[byte] = found == tokens_.end() ? no_token : found->second;
  }
  return take_merges(vocabulary);
}

Result<std::string> BpeEncoder::normalize(std::string_view part, bool at_start) const {
  std::string text(part);
  for (const NormalizerStep& step : normalizer_) {
    switch (step.kind) {
      case NormalizerStep::Kind::nfc: {
        utf8proc_uint8_t* composed = nullptr;
        const utf8proc_ssize_t length =
            utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                         static_cast<utf8proc_ssize_t>(text.size()), &composed,
                         static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        if (length < 0) {
          return Error{ErrorKind::usage,
                       fmt::format("text {}: normalisation form C fails ({}); accepted: UTF-8",
                                   quote(part), utf8proc_errmsg(length))};
        }
        text.assign(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(length));
        std::free(composed);
        break;
      }
      case NormalizerStep::Kind::replace:
        text = replace_all(text, step.from, step.to);
        break;
      case NormalizerStep::Kind::prepend_once_at_start:
        if (!at_start) break;
        [[fallthrough]];
      case NormalizerStep::Kind::prepend_once:
        if (text.starts_with(step.to)) break;
        [[fallthrough]];
      case NormalizerStep::Kind::prepend:
        text.insert(0, step.to);
        break;
    }
    if (text.size() > 4 * TokenizerLimits::text_bytes) {
      return Error{ErrorKind::usage,
                   fmt::format("text {}: normalisation gives {} bytes; accepted: at most {}",
                               quote(part), text.size(), 4 * TokenizerLimits::text_bytes)};
    }
  }
  return text;
}

std::optional<Error> BpeEncoder::add_symbols(std::string_view word,
                                             std::vector<TokenId>& symbols) const {
  const auto missing = [](std::string_view what) {
    return Error{ErrorKind::usage,
                 fmt::format("text has {}, for which the vocabulary has no token; accepted: texts "
                             "of its tokens",
                             what)};
  };
  if (byte_level_) {
    for (const char character : word) {
      const auto byte = static_cast<unsigned char>(character);
      const TokenId id = bytes_[byte] != no_token ? bytes_[byte] : unknown_;
      if (id == no_token) return missing(fmt::format("byte 0x{:02x}", byte));
      symbols.push_back(id);
    }
    return std::nullopt;
  }
  for (std::size_t at = 0, end = 0; at < word.size(); at = end) {
    for (end = at + 1; end < word.size() && (word[end] & 0xc0) == 0x80;) ++end;
    const std::string_view character = word.substr(at, end - at);
    if (const auto found = tokens_.find(character); found != tokens_.end()) {
      symbols.push_back(found->second);
      continue;
    }
    const bool falls_back = byte_fallback_ && std::ranges::all_of(character, [&](char byte) {
                              return bytes_[static_cast<unsigned char>(byte)] != no_token;
                            });
    if (falls_back) {
      for (const char byte : character) symbols.push_back(bytes_[static_cast<unsigned char>(byte)]);
    } else if (unknown_ == no_token) {
      return missing(quote(character));
    } else if (!fuse_unknown_ || symbols.empty() || symbols.back() != unknown_) {
      symbols.push_back(unknown_);
    }
  }
  return std::nullopt;
}

void BpeEncoder::merge(std::vector<TokenId>& symbols) const {
  struct Link {
    std::size_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t left;
    TokenId left_id, right_id;
    bool operator<(const Candidate& other) const {  // the queue's top is the greatest
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  const std::size_t end = symbols.size();
  std::vector<Link> links(end);
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::size_t left, std::size_t right) {
    if (left >= end || right >= end) return;
    const Merge* found = find_merge(symbols[left], symbols[right]);
    if (found != nullptr) queue.push({found->rank, left, symbols[left], symbols[right]});
  };
  for (std::size_t at = 0; at < end; ++at) {
    links[at] = {at == 0 ? end : at - 1, at + 1};
    offer(at, at + 1);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const std::size_t right = links[best.left].next;
    // Stale: one of the two has become part of another token meanwhile.
    if (symbols[best.left] != best.left_id || right >= end || symbols[right] != best.right_id) {
      continue;
    }
    symbols[best.left] = find_merge(best.left_id, best.right_id)->result;
    symbols[right] = no_token;
    links[best.left].next = links[right].next;
    if (links[right].next < end) links[links[right].next].previous = best.left;
    offer(links[best.left].previous, best.left);
    offer(best.left, links[best.left].next);
  }
  std::erase(symbols, no_token);
}

Result<bool> BpeEncoder::encode(std::string_view part, bool at_start,
                                std::vector<TokenId>& ids) const {
  const Result<std::string> text = normalize(part, at_start);
  if (!text) return text.error();
  const auto words = splitter_.split(*text);
  if (!words) return words.error();
  std::vector<TokenId> symbols;
  for (const std::string_view word : *words) {
    if (ignore_merges_) {
      std::string spelling(word);
      if (byte_level_) {
        spelling.clear();
        for (const char byte : word) {
          spelling += byte_level_spelling(static_cast<unsigned char>(byte));
        }
      }
      if (const auto found = tokens_.find(spelling); found != tokens_.end()) {
        ids.push_back(found->second);
        continue;
      }
    }
    symbols.clear();
    if (const auto problem = add_symbols(word, symbols)) return *problem;
    merge(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<const TokenEncoder>> make_bpe_encoder(const Vocabulary& vocabulary,
                                                             std::string_view source) {
  auto splitter = WordSplitter::make(vocabulary.words, source);
  if (!splitter) return splitter.error();
  auto encoder = std::make_shared<BpeEncoder>();
  if (const auto problem = encoder->take(vocabulary)) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, *problem)};
  }
  encoder->set_splitter(std::move(*splitter));
  return std::shared_ptr<const TokenEncoder>(std::move(encoder));
}

}  // namespace kvsim
