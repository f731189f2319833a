// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "softfloat/result.h"

/// How far the outputs of one model differ between configurations that should not matter.
namespace kvsim::metrics {

/// What one configuration made of one example.
struct ExampleRun {
  std::vector<std::int64_t> tokens;        ///< generated
  std::vector<double> top1_probabilities;  ///< of the most probable token, one for each token
  bool is_correct = false;
};

/// The four metrics of Yuan et al., "Understanding and mitigating numerical sources of
/// nondeterminism in LLM inference", arXiv 2506.09501, section 3.1, under their names. Deviations
/// are sample deviations over the configurations (divided by their number − 1).
struct Reproducibility {
  double std_at_acc = 0;                ///< of the accuracy, a share from 0 to 1
  double avg_std_at_output_length = 0;  ///< of the number of tokens; mean over the examples
  /// By example: the first position, from 0, before which all configurations agree and at which
  /// two of them do not; nothing where all outputs are equal. An output that has ended differs from
  /// one that goes on.
  std::vector<std::optional<std::int64_t>> div_index;
  double diverging_share = 0;  ///< of the examples
  /// Of the probability of the most probable token at each position before Div_Index: mean over
  /// the positions of an example, then over the examples that have such a position. Nothing where
  /// none has.
  std::optional<double> avg_std_at_top1_prob;
};

/// `examples`[example][configuration]. Errors (usage): another number of configurations in some
/// example, as many probabilities as tokens are not given, a probability outside [0, 1];
/// (cannot_tell) no examples, fewer than two configurations.
[[nodiscard]] Result<Reproducibility> reproducibility(
    std::span<const std::vector<ExampleRun>> examples);

}  // namespace kvsim::metrics
