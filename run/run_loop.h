// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/arm.h"
#include "run/engine.h"
#include "run/record.h"
#include "run/sampling.h"

/// The run: every prompt through every arm, step by step, side by side.
namespace kvsim {

/// A prompt that is run.
struct RunPrompt {
  std::int64_t number = 0;  ///< what records call it, and what its random numbers depend on
  std::vector<TokenId> ids;

  friend bool operator==(const RunPrompt&, const RunPrompt&) = default;
};

/// What is computed.
struct RunOptions {
  /// 1 to 16, with unequal labels. Beside the engine's settings an arm may have
  ///   batch=alone|N           no neighbours, or N − 1 that are as long as the prompt
  ///   padding=none|left|right
  ///   verify-width=K          1 to 64
  /// in place of what `launch` says.
  std::vector<Arm> arms;
  Sampling sampling;
  std::int64_t max_new_tokens = 64;  ///< 1 to 2^20
  /// Every arm is fed the first arm's tokens, so that all steps compare arithmetic; the run of a
  /// prompt ends with the first arm. Otherwise each arm is fed its own, and ends by itself.
  bool teacher_forced = false;
  bool stops = true;  ///< a text ends with the engine's stop_tokens()
  Launch launch;      ///< prompt_tokens does not count
  bool state_digests = false;
  bool layer_digests = true;
  std::string version;  ///< of the program, for the head lines
  int threads = 1;      ///< prompts at once; changes no byte
};

/// What a step computed, beside its record.
struct StepDump {
  std::int64_t prompt = 0;
  std::size_t arm = 0;  ///< index into RunOptions::arms
  std::int64_t step = 0;
  std::span<const double> logits;
  std::span<const StateValues> values;
};

/// Where a run's results go.
struct RunOutput {
  /// Takes the lines, prompt by prompt in their order: the head line; then for each step the step
  /// lines of the arms in their order, then the comparisons of the first arm with each other one.
  /// Never called by two threads at once. What it fails with ends the run.
  std::function<Result<bool>(const RecordLine&)> line;
  bool dump_state = false;   ///< StepDump::values has rows of K and V
  bool dump_layers = false;  ///< StepDump::values has hidden states
  /// Takes what each step computed; may be empty. Called by several threads, for one prompt in the
  /// order of its steps and arms.
  std::function<Result<bool>(const StepDump&)> dump;
  /// Takes the finished share, 0 … 1; may be empty. Never called by two threads at once.
  std::function<void(double)> progress;
};

/// What is said about a run beside its records.
struct RunSummary {
  std::vector<bool> exp_bounded;  ///< by arm: an exponential is known within bounds only
};

/// An arm, ready to run.
struct PreparedArm {
  Arm arm;
  Launch launch;
  std::optional<std::int64_t> batch;  ///< sequences as long as the prompt, itself included
  std::unique_ptr<EngineArm> engine;

  /// The launch of a prompt of so many tokens.
  [[nodiscard]] Launch launch_of(std::int64_t prompt_tokens) const;
};

/// A run of which everything is checked that can be before it computes.
class PreparedRun {
 public:
  /// The engine must outlive the run. Errors (usage), one line each: options out of range, two arms
  /// with one label, settings that the engine refuses; no prompt, an empty prompt, a token id that
  /// the vocabulary lacks, a prompt that with its new tokens is longer than the model's context, a
  /// prompt that an arm has no plan for.
  [[nodiscard]] static Result<PreparedRun> make(const Engine& engine, RunOptions options,
                                                std::vector<RunPrompt> prompts);

  [[nodiscard]] const RunOptions& options() const { return options_; }
  [[nodiscard]] std::span<const RunPrompt> prompts() const { return prompts_; }
  [[nodiscard]] std::span<const PreparedArm> arms() const { return arms_; }
  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }
  [[nodiscard]] const std::vector<std::int64_t>& stop_tokens() const { return stop_tokens_; }
  /// The head line of prompt `index`.
  [[nodiscard]] PromptRecord head_line(std::size_t index) const;

  /// Runs the prompts first, first + 1, … Equal runs give equal lines, whatever the threads. The
  /// first error ends the run; it names prompt, arm and step.
  [[nodiscard]] Result<RunSummary> run(const RunOutput& output, std::size_t first = 0) const;

 private:
  RunOptions options_;
  std::vector<RunPrompt> prompts_;
  std::vector<PreparedArm> arms_;
  RecordRun record_;
  std::int64_t vocabulary_ = 0;
  std::vector<std::int64_t> stop_tokens_;
};

}  // namespace kvsim
