// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "softfloat/result.h"

/// `kvsim fuzz flip --model`: texts of a model instead of numbers.
namespace kvsim {

/// The options that only a search with a model has.
[[nodiscard]] std::span<const OptionSpec> model_flip_options();

/// Searches. Errors (usage): options of the search for numbers; those of the readers and engines.
[[nodiscard]] Result<Answer> run_model_flip(const ParsedOptions& options);

/// Computes a case of kind `model` again; the model is the case's, or that of --model.
[[nodiscard]] Result<Answer> replay_model(const ParsedOptions& options, const std::string& path,
                                          const std::string& text);

/// Makes such a case shorter (`kvsim fuzz shrink`).
[[nodiscard]] Result<Answer> shrink_model(const ParsedOptions& options, const std::string& path,
                                          const std::string& text);

}  // namespace kvsim
