// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "cli/output.h"
#include "cli/predict/prediction_options.h"
#include "sim/predict/prediction.h"

/// The tables of a prediction, part by part.
namespace kvsim::prediction_tables {

/// Shape, device, kernels, formats and where the numbers come from.
[[nodiscard]] Table settings(const Prediction& prediction, const PredictionRequest& request);

/// Part 1: both kernels and their distance from exact attention.
[[nodiscard]] Table attention_sides(const Prediction& prediction);
/// Part 1: the ulp histogram of the difference.
[[nodiscard]] Table ulp_histogram(const Prediction& prediction);
/// Part 2.
[[nodiscard]] Table projections(const Prediction& prediction);
/// Part 3: bit-equality classes by size.
[[nodiscard]] Table size_classes(const Prediction& prediction);
/// Part 3: chunks and prefix hits against the whole prompt.
[[nodiscard]] Table chunks(const Prediction& prediction);
/// Part 4.
[[nodiscard]] Table grouped_queries(const Prediction& prediction);
/// Part 5.
[[nodiscard]] Table drift(const Prediction& prediction);
/// Part 6.
[[nodiscard]] Table flips(const Prediction& prediction);
/// Part 7.
[[nodiscard]] Table controls(const Prediction& prediction);
/// Part 8.
[[nodiscard]] Table tolerances(const Prediction& prediction);

/// How the exponential behind some bits is known: "bounded" or "exact".
[[nodiscard]] std::string_view exp_text(bool bounded);

}  // namespace kvsim::prediction_tables
