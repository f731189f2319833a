// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/by_prompt.h"

#include <algorithm>
#include <limits>

#include "experiments/statistics/bootstrap.h"

namespace kvsim::experiments {

void NumbersByPrompt::add(std::int64_t prompt, double number) {
  prompts_[prompt].push_back(number);
  ++count_;
}

std::vector<std::vector<double>> NumbersByPrompt::lists() const {
  std::vector<std::vector<double>> lists;
  lists.reserve(prompts_.size());
  for (const auto& [prompt, numbers] : prompts_) lists.push_back(numbers);
  return lists;
}

std::vector<double> NumbersByPrompt::all() const {
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(count_));
  for (const auto& [prompt, numbers] : prompts_) {
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

std::optional<double> NumbersByPrompt::largest() const {
  const std::vector<double> numbers = all();
  if (numbers.empty()) return {};
  return *std::ranges::max_element(numbers);
}

std::int64_t NumbersByPrompt::prompts_with_numbers() const {
  return std::ranges::count_if(prompts_, [](const auto& each) { return !each.second.empty(); });
}

std::optional<statistics::Estimate> NumbersByPrompt::mean() const {
  if (count_ == 0) return {};
  if (prompts_with_numbers() > 1) {
    const auto drawn = statistics::bootstrap_mean(lists(), {.resamples = study_resamples});
    if (drawn && drawn->standard_error > 0) return drawn->percentile;
  }
  double sum = 0;
  for (const double number : all()) sum += number;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return statistics::Estimate{sum / static_cast<double>(count_), nan, nan};
}

void CountsByPrompt::add(std::int64_t prompt, bool happened) {
  statistics::Count& count = prompts_[prompt];
  ++count.trials;
  ++all_.trials;
  if (!happened) return;
  ++count.successes;
  ++all_.successes;
}

std::optional<statistics::Estimate> CountsByPrompt::share() const {
  std::vector<statistics::Count> counts;
  counts.reserve(prompts_.size());
  for (const auto& [prompt, count] : prompts_) counts.push_back(count);
  const auto share = statistics::clustered_share(counts);
  if (!share) return {};
  return *share;
}

}  // namespace kvsim::experiments
