// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/reproducibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "experiments/metrics/token_divergence.h"
#include "experiments/statistics/samples.h"
#include "sim/predict/confidence.h"

namespace kvsim::metrics {
namespace {

double deviation(std::span<const double> values) {
  return std::sqrt(statistics::moments(values).variance());
}

std::optional<Error> check_run(const ExampleRun& run) {
  if (run.tokens.size() != run.top1_probabilities.size()) {
    return Error{ErrorKind::usage, fmt::format("{} tokens with {} probabilities; accepted: one for "
                                               "each token",
                                               run.tokens.size(), run.top1_probabilities.size())};
  }
  for (const double p : run.top1_probabilities) {
    if (p >= 0 && p <= 1) continue;
    return Error{ErrorKind::usage, fmt::format("probability {}; accepted: 0 to 1", p)};
  }
  return std::nullopt;
}

std::optional<Error> check_examples(std::span<const std::vector<ExampleRun>> examples) {
  if (examples.empty() || examples.front().size() < 2) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{} examples in {} configurations; needed: 1 or more in 2 or more",
                             examples.size(), examples.empty() ? 0 : examples.front().size())};
  }
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].size() != examples.front().size()) {
      return Error{ErrorKind::usage, fmt::format("example {} has {} configurations; accepted: {}, "
                                                 "as the first",
                                                 i, examples[i].size(), examples.front().size())};
    }
    for (const ExampleRun& run : examples[i]) {
      const std::optional<Error> error = check_run(run);
      if (error) return Error{error->kind, fmt::format("example {}: {}", i, error->message)};
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> divergence_index(std::span<const ExampleRun> runs) {
  std::optional<std::int64_t> first;
  for (const ExampleRun& run : runs.subspan(1)) {
    const auto flip = token_divergence(runs.front().tokens, run.tokens).flip_index;
    if (flip && (!first || *flip < *first)) first = flip;
  }
  return first;
}

/// The mean over the first `positions` of the deviation over the configurations.
double probability_deviation(std::span<const ExampleRun> runs, std::size_t positions) {
  std::vector<double> deviations;
  deviations.reserve(positions);
  std::vector<double> values(runs.size());
  for (std::size_t position = 0; position < positions; ++position) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      values[i] = runs[i].top1_probabilities[position];
    }
    deviations.push_back(deviation(values));
  }
  return statistics::moments(deviations).mean;
}

}  // namespace

Result<Reproducibility> reproducibility(std::span<const std::vector<ExampleRun>> examples) {
  if (auto error = check_examples(examples)) return *error;
  const std::size_t configurations = examples.front().size();
  const auto count = static_cast<double>(examples.size());
  Reproducibility result;
  result.div_index.reserve(examples.size());
  std::vector<double> accuracies(configurations);
  std::vector<double> length_deviations;
  std::vector<double> probability_deviations;
  length_deviations.reserve(examples.size());
  probability_deviations.reserve(examples.size());
  double diverging = 0;
  for (const std::vector<ExampleRun>& runs : examples) {
    std::vector<double> lengths;
    lengths.reserve(configurations);
    for (std::size_t i = 0; i < configurations; ++i) {
      lengths.push_back(static_cast<double>(runs[i].tokens.size()));
      if (runs[i].is_correct) accuracies[i] += 1;
    }
    length_deviations.push_back(deviation(lengths));
    const std::optional<std::int64_t> index = divergence_index(runs);
    result.div_index.push_back(index);
    if (index) diverging += 1;
    const std::size_t agreed =
        index ? static_cast<std::size_t>(*index) : runs.front().tokens.size();
    if (agreed > 0) probability_deviations.push_back(probability_deviation(runs, agreed));
  }
  // Right answers are whole numbers: divided afterwards, equal accuracies deviate by exactly 0.
  result.std_at_acc = nine_digits(deviation(accuracies) / count);
  result.avg_std_at_output_length = nine_digits(statistics::moments(length_deviations).mean);
  result.diverging_share = nine_digits(diverging / count);
  if (!probability_deviations.empty()) {
    result.avg_std_at_top1_prob = nine_digits(statistics::moments(probability_deviations).mean);
  }
  return result;
}

}  // namespace kvsim::metrics
