// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/setup.h"
#include "run/arm.h"
#include "run/engine.h"
#include "run/kept_rows.h"
#include "softfloat/result.h"

/// How many rows of a model a piece of a study computes: for estimates of time.
namespace kvsim::experiments {

/// Counts the rows of one sequence's passes, in their order, without those that it keeps
/// (run/kept_rows.h).
class PassCount {
 public:
  /// Refers to the arm.
  PassCount(const StudyArm& arm, std::int64_t prompt_tokens);

  void add(const PlanStep& step);
  [[nodiscard]] std::int64_t rows() const { return rows_; }

 private:
  const KeepsRows* keeper_;  ///< null: every row is computed
  Launch launch_;
  std::int64_t from_start_ = 0;  ///< rows of the pass before, if it began with row 0
  std::int64_t rows_ = 0;
};

/// What an arm computes. Counts of equal lengths are made once.
class ArmWork {
 public:
  explicit ArmWork(StudyArm arm) : arm_(std::move(arm)) {}
  /// Errors (usage) of prepare().
  [[nodiscard]] static Result<ArmWork> of(const Engine& engine, const Arm& arm);

  /// The passes for the first `steps` tokens behind a prompt, of which there is at least one.
  /// Errors (usage) of cache_plan().
  [[nodiscard]] Result<std::int64_t> text(std::int64_t prompt_tokens, std::int64_t steps);
  /// The cache over a prompt and `generated` tokens that are all known. Errors as of text().
  [[nodiscard]] Result<std::int64_t> cache(std::int64_t prompt_tokens, std::int64_t generated);

  [[nodiscard]] const StudyArm& arm() const { return arm_; }

 private:
  StudyArm arm_;
  std::map<std::tuple<std::int64_t, std::int64_t>, std::int64_t> texts_;
};

/// Texts behind the same prompt, one of each arm.
struct TextGroup {
  std::vector<ArmWork> arms = {};
  std::int64_t steps = 0;

  /// Errors (usage) of prepare().
  [[nodiscard]] static Result<TextGroup> of(const Engine& engine, std::span<const Arm> arms,
                                            std::int64_t steps);
  /// All texts. Errors as of ArmWork::text().
  [[nodiscard]] Result<std::int64_t> work(std::int64_t prompt_tokens);
};

/// Tokens of a prompt of the setup.
[[nodiscard]] std::int64_t prompt_tokens(const StudySetup& setup, std::int64_t prompt);

}  // namespace kvsim::experiments
