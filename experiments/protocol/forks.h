// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experiments/protocol/transplant.h"
#include "experiments/setup.h"
#include "experiments/work.h"
#include "softfloat/result.h"

/// Two caches over the same tokens, one made as an arm makes it and one by a single pass, at a step
/// where texts go on from them differently.
namespace kvsim::experiments {

/// The arm that has an arm's settings and prefills all tokens in one pass.
[[nodiscard]] Arm one_shot_arm(const Arm& arm);

/// Both before the pass over the same one row.
struct ForkPair {
  std::int64_t step = 0;   ///< generated tokens, all of them fed
  std::int64_t tried = 0;  ///< steps at which both caches were made
  Fork live;               ///< the arm's own cache
  Fork rebuilt;            ///< of one pass over the same tokens
  EnginePass live_pass;    ///< over the row, with its layers' values
  EnginePass rebuilt_pass;

  /// Both passes have another largest logit.
  [[nodiscard]] bool parts() const;
};

/// How a fork is looked for.
struct ForkOptions {
  std::int64_t new_tokens = 64;  ///< of the arm's text
  std::span<const std::int64_t> stop_tokens = {};
  std::int64_t room = 0;   ///< tokens that may be fed behind the fork
  std::int64_t tries = 4;  ///< steps at which the second cache is made, at most
};

/// A fork behind the passes that an arm makes over a prompt and the tokens fed after it, the last
/// one of which is left for the fork's own pass. Errors of the engine.
[[nodiscard]] Result<Fork> built_fork(const StudyArm& arm, std::span<const TokenId> prompt,
                                      std::span<const TokenId> generated, std::int64_t room);

/// Follows the live arm's greedy text and takes its steps with the smallest margins between the two
/// largest logits, from the third on (before it, one pass made all of the cache); of them, the one
/// of the smallest margin at which both caches part. Where they part at none, the one of the
/// smallest margin at which logits differ; else that of the smallest margin. Nothing where the text
/// has fewer than three tokens. Errors of the engines.
[[nodiscard]] Result<std::optional<ForkPair>> find_fork(const StudyArm& live,
                                                        const StudyArm& rebuilt,
                                                        std::span<const TokenId> prompt,
                                                        const ForkOptions& options);

/// The steps of even_forks(), of a text that does not end before.
[[nodiscard]] std::vector<std::int64_t> even_steps(const ForkOptions& options);

/// What making the second cache of a fork computes, and both passes over the row behind it. Errors
/// as of ArmWork::cache().
[[nodiscard]] Result<std::int64_t> fork_work(ArmWork& rebuilt, std::int64_t prompt_tokens,
                                             std::int64_t step);

/// Forks at `tries` steps spread evenly over the new tokens, from the third on, whatever happens
/// there; those behind the text's end are left out. Errors of the engines.
[[nodiscard]] Result<std::vector<ForkPair>> even_forks(const StudyArm& live,
                                                       const StudyArm& rebuilt,
                                                       std::span<const TokenId> prompt,
                                                       const ForkOptions& options);

}  // namespace kvsim::experiments
