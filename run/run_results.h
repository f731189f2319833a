// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "run/margin.h"
#include "run/record.h"

/// What the lines of a run say together.
namespace kvsim {

/// The lines of one prompt. Step lines lose their lists of the largest and their digests.
struct PromptResult {
  PromptRecord head;
  std::vector<std::vector<StepRecord>> steps;        ///< by arm, in the order of the head line
  std::vector<std::vector<ComparisonRecord>> pairs;  ///< by arm; of the first arm: none
};

/// Puts lines together that belong to one prompt, in the order in which a run gives them.
class RunResults {
 public:
  /// Takes a line; a step or comparison must belong to the last head line that was taken.
  void add(const RecordLine& line);

  [[nodiscard]] const std::vector<PromptResult>& prompts() const { return prompts_; }

 private:
  std::vector<PromptResult> prompts_;
};

/// Where an arm first chose another token than the first arm, after the same tokens.
struct ChosenOtherwise {
  std::int64_t step = 0;  ///< the flip index
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::optional<Margin> first_margin;  ///< how far each side preferred its token
  std::optional<Margin> second_margin;
  std::optional<double> top_two_error;

  friend bool operator==(const ChosenOtherwise&, const ChosenOtherwise&) = default;
};

/// A mean over steps, as the sum in their order and their number.
struct StepMean {
  double sum = 0;
  std::int64_t steps = 0;
  bool is_infinite = false;

  void add(std::optional<double> value);
  void add(const StepMean& other);
  /// +infinity where a value was; 0 without steps.
  [[nodiscard]] double mean() const;

  friend bool operator==(const StepMean&, const StepMean&) = default;
};

/// One arm against the first, over one prompt or several. Steps before which both were fed the same
/// tokens compare arithmetic; those after compare two texts and stand apart.
struct PairSummary {
  std::int64_t steps = 0;                    ///< compared after the same tokens
  std::int64_t equal_steps = 0;              ///< of these: every logit is equal
  std::int64_t token_changes = 0;            ///< of these: another token was chosen
  std::optional<std::int64_t> first_logits;  ///< first of these with a logit that differs
  std::optional<ChosenOtherwise> flip;
  double largest_logit_difference = 0;
  double largest_kl = 0;
  double largest_js = 0;
  StepMean kl;
  StepMean kl_after;  ///< of the steps after other tokens

  friend bool operator==(const PairSummary&, const PairSummary&) = default;
};

/// The summary of one prompt: its first arm against arm `other`.
[[nodiscard]] PairSummary summarize_pair(const PromptResult& prompt, std::size_t other);

/// What several prompts say together. `first_logits` and `flip` are empty: they belong to one.
struct PairTotal {
  PairSummary sum;
  std::int64_t prompts = 0;
  std::int64_t prompts_with_difference = 0;  ///< a logit differs
  std::int64_t prompts_with_flip = 0;
};
[[nodiscard]] PairTotal total_of(const std::vector<PairSummary>& prompts);

}  // namespace kvsim
