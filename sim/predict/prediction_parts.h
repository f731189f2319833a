// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "sim/predict/kernel_choice.h"
#include "sim/predict/prediction.h"

/// From the options of a prediction to those of its parts.
namespace kvsim {

/// The attention layer that parts 1, 4 and 7 share.
struct AttentionPart {
  AttentionPairOptions options;
  AttentionNumbers numbers;
};

/// The captured layer, or a synthetic one of the shape. A long sequence has the queries of its end
/// alone; cache-off is then not split, as the whole would not be.
[[nodiscard]] AttentionPart make_attention_part(const PredictionOptions& options,
                                                const KernelChoice& kernels);

/// Part 1 with the exponential moved: `plain` is the layer as it is.
[[nodiscard]] Result<ExponentialBand> exponential_band(const PredictionOptions& options,
                                                       const AttentionPart& part,
                                                       const AttentionPair& plain);

/// Part 2.
[[nodiscard]] Result<ProjectionDifference> project(const PredictionOptions& options,
                                                   const KernelChoice& kernels);

/// Part 3.
[[nodiscard]] Result<ShapeReport> answer_questions(const PredictionOptions& options,
                                                   const KernelChoice& kernels);

/// Part 4: with synthetic numbers also what K and V lose when they are stored.
[[nodiscard]] Result<GroupedQueries> group_queries(const PredictionOptions& options,
                                                   const AttentionPart& part);

/// Part 8, from what the others found.
[[nodiscard]] std::vector<ToleranceLine> make_tolerances(const Prediction& prediction);

}  // namespace kvsim
