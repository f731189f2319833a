// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The tokenizer readers on any bytes: an answer or one line of error, views inside the input, and a
// tokenizer that was accepted encodes and decodes without leaving its vocabulary.
#include "model/tokenizer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/targets/input.h"
#include "model/gguf_metadata.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 2000);
  for (const char character : error.message) require(character >= ' ' && character <= '~');
  require(error.message.find("accepted:") != std::string::npos);
}

void check_metadata(std::span<const std::byte> input) {
  const auto metadata = kvsim::GgufMetadata::parse(input, "f");
  if (!metadata) return check_error(metadata.error());
  const auto* const begin = reinterpret_cast<const char*>(input.data());
  const std::less_equal<> before;  // total, where the built-in operator is not
  const auto inside = [&](std::string_view part) {
    return before(begin, part.data()) && before(part.data() + part.size(), begin + input.size());
  };
  for (const kvsim::GgufEntry& entry : metadata->entries()) {
    require(inside(entry.key) && metadata->find(entry.key) == &entry);
    if (const auto* text = std::get_if<std::string_view>(&entry.value)) require(inside(*text));
    if (const auto* array = std::get_if<kvsim::GgufArray>(&entry.value)) {
      for (const std::string_view text : array->texts) require(inside(text));
    }
  }
}

void check_text(const kvsim::Tokenizer& tokenizer, std::string_view text, bool special_tokens) {
  const auto ids = tokenizer.encode(text, {.add_bos = {}, .special_tokens = special_tokens});
  if (!ids) return check_error(ids.error());
  const auto decoded = tokenizer.decode(*ids, true);
  require(decoded.has_value());
  require(special_tokens || tokenizer.kind() != "byte-level BPE" || tokenizer.adds_bos() ||
          decoded->size() <= 4 * text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  check_metadata(input);
  const auto tokenizer = kvsim::Tokenizer::parse(input, "f");
  if (!tokenizer) {
    check_error(tokenizer.error());
    require(tokenizer.error().kind == kvsim::ErrorKind::file);
    return 0;
  }
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  constexpr std::array<std::string_view, 4> texts = {"", "a ab  abc\n1 <end>", " \xc3\xa9 x",
                                                     "abcabcabcabc"};
  for (const bool special_tokens : {false, true}) {
    for (const std::string_view text : texts) check_text(*tokenizer, text, special_tokens);
    check_text(*tokenizer, content.substr(0, 200), special_tokens);
  }
  for (std::int64_t id = 0; id < tokenizer->vocabulary_size(); ++id) {
    require(tokenizer->token_bytes(static_cast<kvsim::TokenId>(id)).size() <= size);
  }
  return 0;
}
