// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "experiments/setup.h"
#include "run/engine.h"
#include "softfloat/result.h"

/// Any number of arms along one text: every step compares arithmetic.
namespace kvsim::experiments {

/// An arm and the prompt that it begins with, which may be another one than the others'.
struct AlongArm {
  const StudyArm* arm = nullptr;
  std::span<const TokenId> prompt;
};

/// What the arms gave at one step, in their order.
struct AlongStep {
  std::int64_t step = 0;
  std::span<const EnginePass> passes;
  std::span<const ArmSequence> sequences;  ///< behind the passes
};

struct AlongOptions {
  std::int64_t new_tokens = 8;
  PassRequest request = {};
  /// The token that all are fed; empty: the one that the first arm gives the largest logit.
  std::function<TokenId(const AlongStep&)> choose = {};
  std::span<const std::int64_t> stop_tokens = {};  ///< the text ends with one of them
};

/// Runs all arms, each fed the same tokens. `visit` takes every step; its error ends the run.
/// Errors of the engines.
[[nodiscard]] Result<bool> along_text(std::span<const AlongArm> arms, const AlongOptions& options,
                                      const std::function<Result<bool>(const AlongStep&)>& visit);

}  // namespace kvsim::experiments
