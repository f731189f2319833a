// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experiments/setup.h"
#include "run/divergence.h"
#include "run/margin.h"
#include "run/sampling.h"
#include "softfloat/result.h"

/// Two arms side by side on one prompt, with and without the same tokens.
namespace kvsim::experiments {

/// The first arm against the second at one step, both after the same tokens: the first arm's.
struct ForcedStep {
  double kl = 0;  ///< of the first from the second, nats; binary64 from all logits
  double js = 0;
  LogitDifference difference;
  std::int64_t first_argmax = 0;
  std::int64_t second_argmax = 0;
  std::optional<Margin> first_margin;  ///< of the two largest logits
  std::optional<Margin> second_margin;
  std::optional<double> top_two_error;  ///< top_two_error() of the first in the second
};

/// Both arms along one prompt.
struct PairText {
  std::vector<std::int64_t> first_tokens;
  std::vector<std::int64_t> second_tokens;  ///< each fed its own
  std::optional<std::int64_t> flip;         ///< first step at which they chose another token
  std::vector<ForcedStep> forced;           ///< every step of the first arm's text
  std::vector<double> kl_apart;  ///< after the flip, each after its own tokens: two texts compared
  std::vector<double> js_apart;  ///< of the same steps
};

struct PairTextOptions {
  Sampling sampling;
  std::uint64_t prompt_number = 0;  ///< what random numbers depend on
  std::int64_t new_tokens = 64;
  std::span<const std::int64_t> stop_tokens = {};  ///< a text ends with one of them
  bool follows_apart = true;  ///< goes on with the second arm's own text after the flip
};

/// Runs both. Up to the flip the two texts are one; from there on the second arm is computed twice,
/// along the first arm's tokens and along its own. Errors of the engines and of sample_token().
[[nodiscard]] Result<PairText> compare_texts(const StudyArm& first, const StudyArm& second,
                                             std::span<const TokenId> prompt,
                                             const PairTextOptions& options);

/// The first arm's logits against the second's. Errors (usage): of divergence().
[[nodiscard]] Result<ForcedStep> compare_logits(std::span<const double> first,
                                                std::span<const double> second,
                                                const softfloat::Format& format);

/// The token with the largest logit; of equal ones the one with the lower index.
[[nodiscard]] std::int64_t argmax_of(std::span<const double> logits);

}  // namespace kvsim::experiments
