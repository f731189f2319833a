// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/loaded_model.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/model_places.h"
#include "model/model_store.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array model_rows{
    OptionSpec{"--model", "M",
               "kv-tiny (default), a name that kvsim fetch knows, a Hugging Face folder, or a "
               "llama2.c .bin file"},
    OptionSpec{"--tokenizer", "FILE",
               "tokenizer.json, tokenizer.model, GGUF or llama2.c tokenizer (default: the model "
               "folder's)"},
};

/// The tokenizer that --tokenizer or the model's folder has; nothing where there is none.
Result<std::optional<Tokenizer>> tokenizer_of(const ParsedOptions& options,
                                              const std::string& model_path) {
  std::string path = options.value("--tokenizer").value_or("");
  if (path.empty()) {
    std::error_code none;
    const bool has_one = fs::exists(fs::path(model_path) / "tokenizer.json", none) ||
                         fs::exists(fs::path(model_path) / "tokenizer.model", none);
    if (!has_one) return std::optional<Tokenizer>();
    path = model_path;
  }
  Result<Tokenizer> tokenizer = Tokenizer::load(path);
  if (!tokenizer) return tokenizer.error();
  return std::optional(std::move(*tokenizer));
}

/// The folder of the default model.
Result<std::string> default_path() {
  const std::vector<NamedModel> named = named_models(model_places());
  std::error_code none;
  if (!fs::exists(fs::path(named.front().path) / "config.json", none)) {
    return Error{
        ErrorKind::unavailable,
        fmt::format("the default model {} is not here; --model FOLDER is accepted", default_model)};
  }
  return named.front().path;
}

/// A file of the model's folder, or nothing.
std::string file_beside(const std::string& folder, std::string_view name) {
  std::error_code none;
  const fs::path path = fs::path(folder) / name;
  return fs::is_regular_file(path, none) ? path.string() : std::string();
}

Result<LoadedModel> load(const ParsedOptions& options, std::string name,
                         const Result<std::string>& path) {
  if (!path) return path.error();
  Result<Checkpoint> checkpoint = load_checkpoint(*path);
  if (!checkpoint) return checkpoint.error();
  Result<std::optional<Tokenizer>> tokenizer = tokenizer_of(options, *path);
  if (!tokenizer) return tokenizer.error();
  const std::int64_t vocabulary = checkpoint->config().vocabulary;
  const std::optional<Tokenizer>& known = *tokenizer;
  if (known && known->vocabulary_size() > vocabulary) {
    return Error{ErrorKind::file,
                 fmt::format("the tokenizer has {} tokens, the model {}; a tokenizer of the model "
                             "is accepted",
                             known->vocabulary_size(), vocabulary)};
  }
  return LoadedModel{std::move(name), *path, std::move(*checkpoint), std::move(*tokenizer)};
}

}  // namespace

std::span<const OptionSpec> model_option_rows() { return model_rows; }

Result<LoadedModel> loaded_model(const ParsedOptions& options) {
  if (const auto name = options.value("--model")) return loaded_model(options, *name);
  return load(options, std::string(default_model), default_path());
}

Result<LoadedModel> loaded_model(const ParsedOptions& options, const std::string& name) {
  return load(options, name, find_model(name, model_places()));
}

PromptEncoding encoding_of(const LoadedModel& model) {
  return {.tokenizer = model.tokenizer ? &*model.tokenizer : nullptr,
          .vocabulary = model.checkpoint.config().vocabulary,
          .folder = model.path,
          .own_prompts = file_beside(model.path, "problems.jsonl")};
}

}  // namespace kvsim
