// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/json_tree.h"
#include "model/quote.h"

namespace kvsim {
namespace {

using nlohmann::json;

constexpr std::size_t largest_file = std::size_t{1} << 24;

/// A token is a text, an object with its text under "content", or null.
Result<std::optional<TokenId>> token_of(const json& root, const char* name,
                                        const Vocabulary& vocabulary) {
  const auto found = root.find(name);
  if (found == root.end() || found->is_null()) return std::optional<TokenId>();
  const json* text = &*found;
  if (found->is_object() && found->contains("content")) text = &found->at("content");
  if (!text->is_string()) {
    return Error{ErrorKind::file,
                 fmt::format("{} is of type {}; accepted: a text, or an object with \"content\"",
                             name, found->type_name())};
  }
  const auto& spelling = text->get_ref<const std::string&>();
  const auto piece = std::ranges::find(vocabulary.pieces, spelling, &Piece::text);
  if (piece == vocabulary.pieces.end()) {
    return Error{ErrorKind::file, fmt::format("{} is {}; accepted: a token of the vocabulary", name,
                                              quote(spelling))};
  }
  return std::optional(static_cast<TokenId>(piece - vocabulary.pieces.begin()));
}

}  // namespace

Result<bool> apply_tokenizer_config(std::string_view text, std::string_view source,
                                    Vocabulary& vocabulary) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  if (text.size() > largest_file) {
    return fail(fmt::format("has {} bytes; accepted: at most {}", text.size(), largest_file));
  }
  JsonTreeBuilder builder;
  if (const auto problem = build_json_tree(text, builder)) return fail(*problem);
  const auto bos = token_of(builder.root(), "bos_token", vocabulary);
  if (!bos) return fail(bos.error().message);
  const auto eos = token_of(builder.root(), "eos_token", vocabulary);
  if (!eos) return fail(eos.error().message);
  if (*bos) vocabulary.bos = *bos;
  if (*eos) vocabulary.eos = *eos;
  const auto add = builder.root().find("add_bos_token");
  if (add != builder.root().end() && !add->is_null()) {
    if (!add->is_boolean()) {
      return fail(
          fmt::format("add_bos_token is of type {}; accepted: true or false", add->type_name()));
    }
    vocabulary.add_bos = add->get<bool>() && vocabulary.bos.has_value();
  }
  return true;
}

}  // namespace kvsim
