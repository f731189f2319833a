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

/// A study that is run, and where its records go.
struct StudyRun {
  const experiments::StudyRow* row = nullptr;
  const experiments::StudySetup* setup = nullptr;
  std::string path;
  experiments::StudyRunOptions options;  ///< progress is left empty
};

/// Everything that `kvsim experiment` was asked for, checked.
struct ExperimentRequest {
  std::vector<const experiments::StudyRow*> studies;
  bool has_controls = true;   ///< the controls run, before the studies
  std::string prompt_source;  ///< for people
  std::string folder;         ///< where records go: NAME.jsonl
  bool dry_run = false;
  experiments::StudyRunOptions run;  ///< progress is left empty
  std::unique_ptr<Engine> engine;
  experiments::StudySetup setup;           ///< refers to the engine
  experiments::StudySetup controls_setup;  ///< likewise

  /// What is run, in its order. Refers to this request. The controls are run whole, by the first of
  /// several shards alone; whole records of equal controls are taken as they are, and interrupted
  /// ones are gone on with. Errors of controls_path().
  [[nodiscard]] Result<std::vector<StudyRun>> runs() const;
};

/// The options of the command but the global ones.
[[nodiscard]] std::span<const OptionSpec> experiment_option_rows();

/// Reads the options, the plan file, the model and the prompts. Nothing is written. Errors: of the
/// readers (file), usage, an engine or a model that is not here (unavailable).
[[nodiscard]] Result<ExperimentRequest> experiment_request(const ParsedOptions& given);

}  // namespace kvsim
