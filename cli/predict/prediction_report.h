// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/output.h"
#include "cli/predict/prediction_options.h"
#include "sim/predict/prediction.h"

namespace kvsim {

/// The report of a prediction, in every output form.
[[nodiscard]] Report prediction_report(const Prediction& prediction,
                                       const PredictionRequest& request);

/// What the numbers mean, in one sentence: how many attention outputs differ, and which tokens are
/// at risk.
[[nodiscard]] std::string prediction_headline(const Prediction& prediction);

/// The sentence that cites a tolerance.
[[nodiscard]] std::string tolerance_citation(const Prediction& prediction,
                                             const PredictionRequest& request);

}  // namespace kvsim
