// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The reader of prompts on any bytes, in every format: prompts with a text or ids, or one line of
// error. The first byte chooses the format, so that one corpus serves all.
#include "model/prompts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/targets/input.h"

namespace {

using kvsim::targets::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using enum kvsim::PromptFormat;
  constexpr std::array<kvsim::PromptFormat, 5> formats = {automatic, text, lines, json_lines, ids};
  if (size == 0) return 0;
  const kvsim::PromptOptions options{.format = formats[data[0] % formats.size()]};
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto prompts = kvsim::parse_prompts(content, "f", options);
  if (!prompts) {
    const std::string& message = prompts.error().message;
    require(prompts.error().kind == kvsim::ErrorKind::file && message.size() < 2000);
    for (const char character : message) require(character >= ' ' && character <= '~');
    require(message.find("accepted:") != std::string::npos);
    return 0;
  }
  require(!prompts->empty());
  for (const kvsim::Prompt& prompt : *prompts) {
    require(prompt.text.empty() != prompt.ids.empty());
    require(prompt.text.size() <= size && prompt.ids.size() <= size);
    for (const kvsim::TokenId id : prompt.ids) require(id >= 0);
  }
  return 0;
}
