// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "experiments/study_file.h"
#include "run/engine.h"
#include "softfloat/result.h"

namespace kvsim {

/// Everything that `kvsim experiment` was asked for, checked.
struct ExperimentRequest {
  std::vector<const experiments::StudyRow*> studies;
  std::string prompt_source;  ///< for people
  std::string folder;         ///< where records go: NAME.jsonl
  bool dry_run = false;
  experiments::StudyRunOptions run;  ///< progress is left empty
  std::unique_ptr<Engine> engine;
  experiments::StudySetup setup;  ///< refers to the engine

  /// The file of a study's records.
  [[nodiscard]] std::string path_of(const experiments::StudyRow& row) const;
};

/// The options of the command but the global ones.
[[nodiscard]] std::span<const OptionSpec> experiment_option_rows();

/// Reads the options, the plan file, the model and the prompts. Nothing is written. Errors: of the
/// readers (file), usage, an engine or a model that is not here (unavailable).
[[nodiscard]] Result<ExperimentRequest> experiment_request(const ParsedOptions& given);

}  // namespace kvsim
