// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <vector>

#include "experiments/protocol/pair_text.h"
#include "experiments/study.h"

/// Steps after the same tokens, as records keep them.
namespace kvsim::experiments {

/// One array for each figure: kl, js, largest_logit_difference, argmax_differs, on_margin,
/// on_margin_ulps, off_margin, top_two_error.
[[nodiscard]] Json steps_json(const std::vector<ForcedStep>& steps);

/// A step of a record.
struct RecordedStep {
  double kl = 0;  ///< nats
  double js = 0;
  double largest_logit_difference = 0;
  bool argmax_differs = false;
  std::optional<double> on_margin;  ///< of the first arm, logits
  std::optional<double> on_margin_ulps;
  std::optional<double> top_two_error;
};
/// What steps_json() wrote. Throws Json::exception where it did not.
[[nodiscard]] std::vector<RecordedStep> recorded_steps(const Json& arrays);

}  // namespace kvsim::experiments
