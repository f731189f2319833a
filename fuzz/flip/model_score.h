// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fuzz/flip/model_case.h"
#include "fuzz/flip/random.h"
#include "run/engine.h"
#include "run/run_loop.h"
#include "softfloat/result.h"

/// Texts of a real model on which two arms choose different tokens.
namespace kvsim::fuzz {

/// What two arms make of the last step of a case, beside the same model in binary64.
struct ModelFlip {
  ModelCase flip_case;
  std::array<std::int64_t, 2> tokens{};  ///< what each arm chooses
  /// The logit of on's token less that of off's: in each arm …
  std::array<double, 2> differences{};
  double exact = 0;  ///< … and in binary64, where nothing is rounded to storage
  /// Largest |logit − that in binary64| over the vocabulary, in each arm: observed, no bound.
  std::array<double, 2> largest_error{};
  /// How far `exact` may be off: an estimate. The errors of binary64 are those of the arms times
  /// the ratio of the unit roundoffs, to first order; taken 1024 times as large.
  double judge_error = 0;

  [[nodiscard]] double margin() const;
  /// The most that the margin of a flip can be if no logit is further off than `largest_error`:
  /// twice that of the arm that is wrong, so at most twice the sum.
  [[nodiscard]] double unit() const { return 2 * (largest_error[0] + largest_error[1]); }
  /// margin ÷ unit.
  [[nodiscard]] double ratio() const { return margin() / unit(); }
  /// The arms choose different tokens, and the margin is larger than the judge may be off.
  [[nodiscard]] bool holds() const { return tokens[0] != tokens[1] && margin() > judge_error; }
};

/// What a prompt has of a flip.
struct PromptScore {
  /// 1 + ratio of the best flip; where there is none: less the distance to a flip, in units of the
  /// largest difference between the arms' logits, of the step that comes nearest.
  double fitness = 0;
  std::optional<ModelFlip> flip;  ///< the one with the largest ratio
};

/// Runs prompts through two arms, both fed with on's tokens. Thread-safe.
class ModelScorer {
 public:
  /// The engine must outlive the scorer. Arms that set no dispatch get the engine's by name.
  /// Errors (usage): what PreparedRun::make finds.
  [[nodiscard]] static Result<ModelScorer> make(const Engine& engine, std::array<Arm, 2> arms,
                                                std::int64_t max_new_tokens);

  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] const std::array<Arm, 2>& arms() const { return arms_; }
  [[nodiscard]] std::int64_t max_new_tokens() const { return max_new_tokens_; }

  /// The steps of a prompt. Errors: those of the engine.
  [[nodiscard]] Result<PromptScore> score(std::span<const TokenId> prompt) const;
  /// The last step of a case, computed anew. Errors (usage): another model, ids that it lacks.
  [[nodiscard]] Result<ModelFlip> judge(const ModelCase& model_case) const;
  /// A text of the model's own: a random token, and what on goes on with at temperature 1.
  [[nodiscard]] Result<std::vector<TokenId>> generated(std::int64_t tokens, Random& random) const;

 private:
  ModelScorer(const Engine& engine, std::array<Arm, 2> arms, std::int64_t max_new_tokens)
      : engine_(&engine), arms_(std::move(arms)), max_new_tokens_(max_new_tokens) {}

  [[nodiscard]] Result<PreparedRun> prepared(std::span<const TokenId> prompt) const;
  [[nodiscard]] Result<ModelFlip> judged(ModelCase model_case,
                                         const std::array<std::vector<double>, 2>& logits) const;

  const Engine* engine_;
  std::array<Arm, 2> arms_;
  std::int64_t max_new_tokens_;
  std::unique_ptr<EngineArm> binary64_;
};

}  // namespace kvsim::fuzz
