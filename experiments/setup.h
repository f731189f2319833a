// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "run/arm.h"
#include "run/arm_sequence.h"
#include "run/engine.h"
#include "run/run_loop.h"
#include "run/sampling.h"
#include "softfloat/result.h"

/// What a study is made with: a model on an engine, prompts, and two arms.
namespace kvsim::experiments {

/// A way to choose tokens, by name.
struct Strategy {
  std::string name;  ///< "greedy"
  Sampling sampling;

  /// Draws random numbers: its texts depend on the seed.
  [[nodiscard]] bool is_random() const { return sampling.temperature > 0; }
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// The strategies of arXiv 2604.15409: greedy; top-k 50 and top-p 0.95, both at temperature 0.7.
[[nodiscard]] std::span<const Strategy> strategy_rows();
/// Errors (usage): a name that there is none of.
[[nodiscard]] Result<Strategy> strategy_named(std::string_view name);

/// A prompt and what is known of it.
struct StudyPrompt {
  RunPrompt prompt;
  std::string answer;  ///< the correct one, as its file gives it; may be empty
};

/// Everything that determines a study's numbers, and what computes them.
struct StudySetup {
  const Engine* engine = nullptr;
  std::vector<StudyPrompt> prompts;
  /// With the cache and without it; the first is the reference of every pair.
  Arm on;
  Arm off;
  std::vector<Strategy> strategies;
  std::vector<std::uint64_t> seeds = {1};  ///< of random strategies
  std::int64_t new_tokens = 64;
  bool stops = true;  ///< a text ends with the engine's stop_tokens()
  /// Token ids as text; empty where the model has no tokenizer.
  std::function<std::string(std::span<const TokenId>)> decode;
  std::string version;  ///< of the program
};

/// An arm that an engine has prepared.
struct StudyArm {
  Arm arm;
  std::unique_ptr<EngineArm> engine;
  Launch launch = {};  ///< prompt_tokens does not count

  /// A text of a prompt. Errors (usage) of ArmSequence::open().
  [[nodiscard]] Result<ArmSequence> open(std::span<const TokenId> prompt,
                                         std::int64_t new_tokens) const;
};

/// Errors (usage) of Engine::arm().
[[nodiscard]] Result<StudyArm> prepare(const Engine& engine, const Arm& arm);

}  // namespace kvsim::experiments
