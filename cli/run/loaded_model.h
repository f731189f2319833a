// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/options.h"
#include "cli/run/prompt_options.h"
#include "model/checkpoint.h"
#include "model/tokenizer.h"
#include "softfloat/result.h"

namespace kvsim {

/// The options that say which model, and how it reads text.
[[nodiscard]] std::span<const OptionSpec> model_option_rows();

/// The model that a command runs, as its files have it.
struct LoadedModel {
  std::string name;  ///< as given
  std::string path;
  Checkpoint checkpoint;
  std::optional<Tokenizer> tokenizer;
};

/// Reads --model and --tokenizer: the checkpoint, and the tokenizer where there is one. Errors: of
/// the readers (file); a tokenizer with more tokens than the model (file); a model that is not here
/// (unavailable).
[[nodiscard]] Result<LoadedModel> loaded_model(const ParsedOptions& options);
/// The same of the model of that name or path, whatever --model says.
[[nodiscard]] Result<LoadedModel> loaded_model(const ParsedOptions& options,
                                               const std::string& name);

/// How prompts of the model become token ids. Refers to the model.
[[nodiscard]] PromptEncoding encoding_of(const LoadedModel& model);

}  // namespace kvsim
