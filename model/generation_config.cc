// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/generation_config.h"

#include <fmt/format.h>

#include <utility>

#include "model/config_fields.h"
#include "model/mapped_file.h"
#include "model/quote.h"

namespace kvsim {

Result<GenerationConfig> parse_generation_config(std::string_view text, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(source), problem)};
  };
  Result<std::vector<JsonField>> list = read_json_fields(text);
  if (!list) return fail(list.error().message);
  ConfigFields fields(std::move(*list));
  GenerationConfig config;
  config.eos = fields.token_ids("eos_token_id");
  const std::vector<std::int64_t> bos = fields.token_ids("bos_token_id");
  if (fields.failed()) return fail(fields.problem());
  if (!bos.empty()) config.bos = bos.front();
  return config;
}

Result<GenerationConfig> load_generation_config(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  return parse_generation_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace kvsim
