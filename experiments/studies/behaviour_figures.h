// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/by_prompt.h"
#include "experiments/metrics/answers.h"
#include "experiments/study.h"

/// What the records of `behaviour` add up to.
namespace kvsim::experiments {

/// The KL (nats) that arXiv 2604.15409 reports its means above, at every step.
inline constexpr double reported_kl = 10;

/// The KL of one kind of steps.
struct StepKl {
  NumbersByPrompt kl;
  CountsByPrompt above_reported;  ///< above reported_kl

  void add(std::int64_t prompt, double nats);
};

/// Where in a text a step stands.
enum class TextPart : std::uint8_t {
  first_third,
  second_third,
  last_third,
  up_to_the_fork,   ///< of texts that part: the step at which they choose another token, and before
  behind_the_fork,  ///< of texts that part
};
inline constexpr std::size_t text_parts = 5;

/// The KL of steps along their texts.
class KlAlongTexts {
 public:
  /// The steps of a text in their order, and the one at which it parts from the other.
  void add_text(std::int64_t prompt, const std::vector<double>& nats,
                const std::optional<std::int64_t>& flip);

  [[nodiscard]] const StepKl& all() const { return all_; }
  [[nodiscard]] const StepKl& at(TextPart part) const {
    return parts_[static_cast<std::size_t>(part)];
  }

 private:
  StepKl all_;
  std::array<StepKl, text_parts> parts_;
};

/// Right answers by one rule.
struct AnswerFigures {
  CountsByPrompt on;
  CountsByPrompt off;
  NumbersByPrompt difference;  ///< 1, 0 or −1 of each pair of texts: right with less without
};
inline constexpr std::size_t answer_rules = 2;

/// What the texts of one strategy say.
struct StrategyFigures {
  CountsByPrompt parted;  ///< texts
  std::vector<double> flips;
  KlAlongTexts same_tokens;
  KlAlongTexts own_tokens;
  NumbersByPrompt js;
  NumbersByPrompt js_apart;
  NumbersByPrompt kl_apart;   ///< behind the fork; no numbers where there is none
  NumbersByPrompt unrelated;  ///< of the pair of prompts that begins with this one
  CountsByPrompt argmax_differs;
  double largest_flip_margin = 0;  ///< logits of the arm with the cache, where the argmax differs
  std::array<AnswerFigures, answer_rules> answers;  ///< in the order of metrics::AnswerRule
  std::int64_t full_length = 0;  ///< texts with the cache that have every token that was allowed

  void add(const StudyUnit& unit, const Json& values, std::int64_t new_tokens);
};

/// The parts of units that compare unrelated prompts: the strategy's name and this.
inline constexpr std::string_view unrelated_suffix = ", unrelated";

struct BehaviourFigures {
  std::vector<std::string> order;  ///< strategies as the records have them
  std::map<std::string, StrategyFigures, std::less<>> strategies;
};
/// Throws Json::exception.
[[nodiscard]] BehaviourFigures behaviour_figures(const StudyRecords& records);

}  // namespace kvsim::experiments
