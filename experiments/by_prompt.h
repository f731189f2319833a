// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "experiments/statistics/estimate.h"
#include "experiments/statistics/proportions.h"

/// Numbers and counts that belong to prompts. Steps, seeds and layers of one prompt are not
/// independent, prompts are: every interval takes the prompt as one.
namespace kvsim::experiments {

/// Numbers of prompts, any count of each.
class NumbersByPrompt {
 public:
  void add(std::int64_t prompt, double number);
  /// A prompt that may have none.
  void add_prompt(std::int64_t prompt) { prompts_[prompt]; }

  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The prompts by their number.
  [[nodiscard]] const std::map<std::int64_t, std::vector<double>>& prompts() const {
    return prompts_;
  }
  /// The lists of those prompts, in their order.
  [[nodiscard]] std::vector<std::vector<double>> lists() const;
  /// All numbers, prompt by prompt.
  [[nodiscard]] std::vector<double> all() const;
  /// The largest; nothing without numbers.
  [[nodiscard]] std::optional<double> largest() const;
  /// Prompts that have numbers.
  [[nodiscard]] std::int64_t prompts_with_numbers() const;
  /// The mean of all numbers with the percentile interval of statistics::bootstrap_mean(). The
  /// ends are NaN where that can say nothing: numbers of one prompt alone, one value throughout,
  /// infinite numbers. Nothing without numbers.
  [[nodiscard]] std::optional<statistics::Estimate> mean() const;

 private:
  std::map<std::int64_t, std::vector<double>> prompts_;
  std::int64_t count_ = 0;
};

/// How often something happened, by prompt.
class CountsByPrompt {
 public:
  void add(std::int64_t prompt, bool happened);

  [[nodiscard]] const statistics::Count& all() const { return all_; }
  [[nodiscard]] const std::map<std::int64_t, statistics::Count>& prompts() const {
    return prompts_;
  }
  /// statistics::clustered_share(); nothing without trials.
  [[nodiscard]] std::optional<statistics::Estimate> share() const;

 private:
  std::map<std::int64_t, statistics::Count> prompts_;
  statistics::Count all_;
};

/// How many times a bootstrap of a study draws the prompts.
inline constexpr std::int64_t study_resamples = 2000;

}  // namespace kvsim::experiments
