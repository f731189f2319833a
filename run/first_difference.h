// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/margin.h"
#include "run/record_reader.h"
#include "run/top_k_divergence.h"
#include "softfloat/result.h"

/// Where two records first differ, at four levels: state, layer, route, token.
namespace kvsim {

/// The first piece of state with another digest.
struct StateDifference {
  std::int64_t step = 0;
  std::int64_t layer = 0;
  std::string operation;
  std::int64_t head = 0;
  std::int64_t position = 0;

  friend bool operator==(const StateDifference&, const StateDifference&) = default;
};

/// The first layer with another digest of its hidden state, or of its route.
struct LayerDifference {
  std::int64_t step = 0;
  std::int64_t layer = 0;

  friend bool operator==(const LayerDifference&, const LayerDifference&) = default;
};

/// The first step with another token.
struct TokenFlip {
  std::int64_t step = 0;  ///< the flip index
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::optional<Margin> first_margin;  ///< how far each side preferred its token
  std::optional<Margin> second_margin;

  friend bool operator==(const TokenFlip&, const TokenFlip&) = default;
};

/// One step that both have.
struct StepComparison {
  std::int64_t step = 0;
  /// Both were fed the same tokens before: the step compares arithmetic. Otherwise it compares two
  /// texts, and its numbers must never be averaged with those of the former.
  bool same_context = true;
  std::optional<KlLowerBound> kl;     ///< of the first from the second; none without log-probs
  std::vector<std::int64_t> entered;  ///< ids only in the second's list of the largest, ascending
  std::vector<std::int64_t> left;     ///< ids only in the first's
};

/// How often a token entered or left the list of the largest while the contexts were the same.
struct ChurnRow {
  std::int64_t id = 0;
  std::int64_t entered = 0;
  std::int64_t left = 0;

  friend bool operator==(const ChurnRow&, const ChurnRow&) = default;
};

/// Two records of one prompt. A level that was not recorded on both sides has compared 0 digests.
struct PromptDifference {
  std::int64_t prompt = 0;
  std::int64_t first_steps = 0;  ///< of each side; the shorter one is compared
  std::int64_t second_steps = 0;
  std::int64_t state_digests = 0;  ///< compared
  std::int64_t layer_digests = 0;
  std::int64_t route_digests = 0;
  std::int64_t token_digests = 0;  ///< of all logits
  std::optional<StateDifference> state;
  std::optional<LayerDifference> layer;
  std::optional<LayerDifference> route;
  std::optional<std::int64_t> logits;  ///< first step whose logits differ in any bit
  std::optional<TokenFlip> token;
  std::vector<StepComparison> steps;
  std::vector<ChurnRow> churn;  ///< most changes first, then by id
};

/// Two records, prompt by prompt.
struct RecordComparison {
  std::vector<PromptDifference> prompts;  ///< in both, by number
  std::int64_t only_in_first = 0;         ///< prompts
  std::int64_t only_in_second = 0;
};

/// Compares one arm of `first` with one of `second`; both may be the same records. State digests
/// are matched by (layer, operation, head, position), in the order of the first. Errors (usage): an
/// arm that no prompt has, other token ids under the same prompt number; errors of kl_lower_bound()
/// with prompt and step; (cannot_tell) no prompt in both.
[[nodiscard]] Result<RecordComparison> compare_records(const Records& first,
                                                       std::string_view first_arm,
                                                       const Records& second,
                                                       std::string_view second_arm);

}  // namespace kvsim
