// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

#include "experiments/study.h"
#include "softfloat/result.h"

/// What falsify's records of a model say, kind by kind. Each takes the values of the pieces of one
/// kind, adds tables, and its numbers to the result under the name given here. Throws
/// Json::exception as Study::summarize() does.
namespace kvsim::experiments {

/// result["layers"]: by layer the root mean square of the relative difference, and its growth from
/// layer to layer with an interval over prompts.
void summarize_layers(std::span<const Json> prompts, StudySummary& summary);

/// result["cache"]: by layer, keys and values computed at once against token by token.
void summarize_cache(std::span<const Json> prompts, StudySummary& summary);

/// result["formats"]: by format KL, what the unit roundoff predicts, and the floor of evaluating it
/// in binary32.
void summarize_formats(std::span<const Json> prompts, StudySummary& summary);

/// A text of a strategy, as measure_text() has it.
struct TextOfStrategy {
  std::string strategy;
  Json values;
};
/// result["texts"]: the correlation of flip index and KL, and what it is in texts whose KL does not
/// depend on the flip. `unrelated`: of measure_unrelated().
void summarize_texts(std::span<const TextOfStrategy> texts, std::span<const Json> unrelated,
                     StudySummary& summary);

}  // namespace kvsim::experiments
