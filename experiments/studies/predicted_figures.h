// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/by_prompt.h"
#include "experiments/statistics/estimate.h"
#include "experiments/study.h"
#include "softfloat/result.h"

/// What the records of the study predicted say together. Steps behind the prompt count: step 1 and
/// later.
namespace kvsim::experiments {

/// A prediction is good that is at most so many times too small or too large.
inline constexpr double good_factor = 2;
/// Fewer flips than that, expected and seen, or steps that differ, say nothing about a rate.
inline constexpr double fewest_events = 5;

/// Whether measured ÷ predicted is within the good factor; two zeros are.
[[nodiscard]] bool is_within(double measured, double predicted);

/// Relative L2 of the hidden state behind one layer.
struct LayerComparison {
  statistics::Estimate measured;     ///< mean of steps, prompt by prompt
  statistics::Estimate predicted;    ///< the same of the seeded decoders
  std::optional<double> ratio = {};  ///< measured ÷ predicted
  /// Growth from the layer before, measured ÷ predicted: what this layer alone has to do with it.
  std::optional<double> growth = {};
  std::int64_t differing = 0;            ///< measured steps at which the state differs at all
  std::int64_t predicted_differing = 0;  ///< the same of the decoders' steps
  std::optional<bool> within = {};       ///< nothing: too few differ to tell
};

/// One way to predict flips.
struct FlipComparison {
  std::string error;     ///< of the logits: "predicted" or "measured"
  std::string law;       ///< "on the grid" or "normal"
  double deviation = 0;  ///< of the difference of the two largest logits, root mean square
  double expected = 0;   ///< flips
  std::optional<double> ratio = {};  ///< measured ÷ expected
  std::optional<bool> within = {};   ///< nothing: too few flips to tell
};

struct PredictedFigures {
  std::int64_t decoders = 0;  ///< seeded ones
  std::int64_t steps = 0;
  std::vector<LayerComparison> layers;
  CountsByPrompt flips;  ///< steps whose argmax differs
  std::vector<FlipComparison> laws;
};

/// Throws Json::exception as Study::summarize(). Errors (cannot_tell): no step behind a prompt, no
/// seeded decoder.
[[nodiscard]] Result<PredictedFigures> predicted_figures(const StudyRecords& records);

}  // namespace kvsim::experiments
