// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/setup.h"
#include "softfloat/result.h"

/// A greedy text of one way to compute, and its choices along the text of a reference.
namespace kvsim::experiments {

/// What the others are held against.
struct ReferenceText {
  std::vector<std::int64_t> tokens;
  std::vector<std::vector<double>> logits;  ///< of each step
};

/// One sequence, or two that differ only in the format of the logits: the second's count where the
/// first's margin is at most `margin_ulps` units in the last place.
struct PrecisionArms {
  const StudyArm* base = nullptr;
  const StudyArm* head = nullptr;  ///< may be none
  double margin_ulps = 0;
};

struct PrecisionText {
  // Along the reference.
  std::vector<std::int64_t> base;   ///< the largest logit
  std::vector<std::int64_t> head;   ///< of the second head; empty without one
  std::vector<double> margin_ulps;  ///< of the base's two largest logits
  std::vector<double> kl;           ///< the reference's from the chosen logits', nats
  // Its own text.
  std::vector<std::int64_t> tokens;
  std::vector<double> top1;  ///< probability of the most probable token
};

struct PrecisionOptions {
  std::int64_t new_tokens = 64;
  std::span<const std::int64_t> stop_tokens = {};
};

/// The greedy text of an arm. Errors of the engine.
[[nodiscard]] Result<ReferenceText> reference_text(const StudyArm& arm,
                                                   std::span<const TokenId> prompt,
                                                   const PrecisionOptions& options);

/// As long as its own text is the reference's, the two are computed once. Errors of the engine.
[[nodiscard]] Result<PrecisionText> precision_text(const PrecisionArms& arms,
                                                   std::span<const TokenId> prompt,
                                                   const ReferenceText& reference,
                                                   const PrecisionOptions& options);

}  // namespace kvsim::experiments
