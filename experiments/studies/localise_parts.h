// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>

#include "experiments/setup.h"
#include "experiments/study.h"
#include "experiments/work.h"
#include "softfloat/result.h"

/// The two measurements of the study `localise`, and what their numbers say.
namespace kvsim::experiments {

/// Names of the parts.
inline constexpr std::string_view localise_fork_part = "transplant";
inline constexpr std::string_view localise_first_step_part = "first-step";

/// Tokens that are followed behind a patch at a fork, its own included.
inline constexpr std::int64_t localise_follows = 8;
/// Steps that the paper averages over (arXiv 2604.15409: MAX_STEPS = 32).
inline constexpr std::int64_t localise_steps = 32;

/// Patches between two caches over the same tokens, at a step where their texts part: {"fork":null}
/// for a text of fewer than three tokens. Errors of the engine.
[[nodiscard]] Result<Json> measure_fork(const StudySetup& setup, const StudyPrompt& prompt);

/// Patches of hidden states at the first decode step. Errors of the engine.
[[nodiscard]] Result<Json> measure_first_step(const StudySetup& setup, const StudyPrompt& prompt);

/// What they compute for a prompt, about: at a fork in the middle of the text, with second caches
/// at as many steps as are tried, and where no patch changes a token. Errors (usage) of the engine.
class LocaliseWork {
 public:
  [[nodiscard]] static Result<LocaliseWork> of(const StudySetup& setup);
  [[nodiscard]] Result<std::int64_t> fork(std::int64_t prompt_tokens);
  [[nodiscard]] Result<std::int64_t> first_step(std::int64_t prompt_tokens);

 private:
  LocaliseWork(ArmWork on, ArmWork off, ArmWork rebuilt, std::int64_t new_tokens,
               const StateShape& shape);

  ArmWork on_;
  ArmWork off_;
  ArmWork rebuilt_;
  std::int64_t new_tokens_;
  StateShape shape_;
};

/// Tables and numbers of either part. Throws Json::exception, as Study::summarize() does.
[[nodiscard]] Result<bool> summarize_forks(const StudyRecords& records, StudySummary& summary);
[[nodiscard]] Result<bool> summarize_first_steps(const StudyRecords& records,
                                                 StudySummary& summary);

}  // namespace kvsim::experiments
