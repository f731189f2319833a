// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "run/arm.h"
#include "run/engine.h"
#include "softfloat/result.h"

namespace kvsim {

/// One arm along one text: what was fed, and the passes that the arm's cache constructor makes for
/// the next token.
class ArmSequence {
 public:
  /// A text that begins with `prompt` and gets at most `new_tokens` more. Errors (usage) of
  /// EngineArm::open().
  [[nodiscard]] static Result<ArmSequence> open(const EngineArm& engine, const Arm& arm,
                                                std::span<const TokenId> prompt,
                                                std::int64_t new_tokens, const Launch& launch);

  /// Makes the passes for the next token after what was fed. Values and digests of keys and values
  /// are those of all passes, the later one's where two wrote the same row; hidden states and what
  /// operators give are read and replaced in the last pass (of two "residual" of a layer, the later
  /// one). To be called once for each token, after feed(). Errors of
  /// next_passes() and EngineSequence::pass().
  [[nodiscard]] Result<EnginePass> next(const PassRequest& request);

  /// The token that follows.
  void feed(TokenId token) { fed_.push_back(token); }

  /// Prompt and fed tokens.
  [[nodiscard]] std::span<const TokenId> tokens() const { return fed_; }
  [[nodiscard]] std::int64_t prompt_tokens() const { return prompt_tokens_; }
  /// The sequence itself, whose state may be read and replaced between two steps.
  [[nodiscard]] EngineSequence& sequence() { return *sequence_; }
  [[nodiscard]] const EngineSequence& sequence() const { return *sequence_; }
  /// An exponential of a pass was known within bounds only.
  [[nodiscard]] bool exp_bounded() const { return exp_bounded_; }

  /// A copy with the same text and cache: what it computes has the bits of the original.
  [[nodiscard]] Result<ArmSequence> copy() const;

 private:
  ArmSequence() = default;

  Arm arm_;
  std::unique_ptr<EngineSequence> sequence_;
  std::vector<TokenId> fed_;
  std::int64_t prompt_tokens_ = 0;
  bool has_begun_ = false;  ///< the passes over the prompt were made
  bool exp_bounded_ = false;
};

}  // namespace kvsim
