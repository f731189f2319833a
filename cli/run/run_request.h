// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/options.h"
#include "cli/run/token_text.h"
#include "run/engine.h"
#include "run/run_loop.h"

namespace kvsim {

/// Everything that `kvsim run` was asked for, checked.
struct RunRequest {
  std::string model;          ///< as given
  std::string prompt_source;  ///< for people
  int threads = 1;
  TokenText text{std::nullopt};
  std::unique_ptr<Engine> engine;
  PreparedRun run;  ///< refers to the engine
  std::string out;  ///< file of records; empty: none is written
  bool resume = false;
  bool dump_layers = false;
  bool dump_state = false;
  bool dump_logits = false;
  bool explain = false;
};

/// The options that are neither about prompts nor about arms.
[[nodiscard]] std::span<const OptionSpec> request_option_rows();

/// Reads the options, the model and the prompts. Nothing is written. Errors: of the readers (file),
/// of PreparedRun::make (usage), an engine or a model that is not here (unavailable).
[[nodiscard]] Result<RunRequest> run_request(const ParsedOptions& options);

}  // namespace kvsim
