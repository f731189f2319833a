// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/statistics/estimate.h"
#include "experiments/study.h"
#include "softfloat/result.h"

/// What the records of the study drift say together.
namespace kvsim::experiments {

/// One number for each layer, or for each head of one.
using ByLayer = std::vector<double>;
using NamedByLayer = std::map<std::string, ByLayer, std::less<>>;

/// Steps of several prompts taken together: those of one checkpoint, or of all.
struct DriftSteps {
  std::int64_t prompts = 0;
  std::int64_t steps = 0;
  std::int64_t differing = 0;       ///< steps in which some hidden state differs
  NamedByLayer means;               ///< by field of hidden states
  NamedByLayer largest;             ///< likewise
  NamedByLayer operators;           ///< mean relative L2 by operator
  std::vector<ByLayer> weights_kl;  /// [layer][head], means
  double kl = 0;                    ///< mean, of the logits
  /// By field and prompt the sums of its steps, for intervals.
  std::map<std::string, std::vector<ByLayer>, std::less<>> by_prompt;

  /// Throws Json::exception.
  void add(const Json& step, bool is_new_prompt);
  /// Sums become means.
  void finish();
};

struct DriftFigures {
  std::map<std::int64_t, DriftSteps> checkpoints;  ///< by step
  DriftSteps generated;                            ///< all of them but the prompt's own
  std::int64_t prompts = 0;
  std::int64_t head_dim = 0;
  std::string left_out;  ///< why scores are missing; empty: they are not
};
/// Throws Json::exception as Study::summarize().
[[nodiscard]] DriftFigures drift_figures(const StudyRecords& records);

/// A quantity against depth.
struct DepthTrend {
  std::int64_t layer = 0;  ///< the first one with a value other than 0; else 0
  double first = 0;        ///< there
  double last = 0;
  std::optional<double> ratio;                   ///< last ÷ first
  std::optional<statistics::Estimate> interval;  ///< of the ratio, over prompts
  std::optional<double> spearman;                ///< against the number of the layer
  std::optional<double> p;                       ///< from 10 layers on
  std::optional<double> slope;  ///< of the binary logarithm, per layer from that one on
};
/// Of the means of a field of hidden states. `stream` is that of the interval's random numbers.
[[nodiscard]] Result<DepthTrend> depth_trend(const DriftSteps& steps, std::string_view field,
                                             std::uint64_t stream);

}  // namespace kvsim::experiments
