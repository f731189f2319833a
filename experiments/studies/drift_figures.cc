// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/drift_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/correlation.h"
#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t ratio_resamples = 2000;
/// Student's law of a rank correlation is too far off below so many pairs.
constexpr std::int64_t pairs_of_student = 10;

ByLayer numbers_of(const Json& array) {
  ByLayer numbers;
  numbers.reserve(array.size());
  for (const Json& each : array) numbers.push_back(number_of(each).value_or(0));
  return numbers;
}

void add_to(ByLayer& sums, const ByLayer& numbers) {
  sums.resize(std::max(sums.size(), numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
}

void divide(NamedByLayer& sums, std::int64_t count) {
  for (auto& [name, layers] : sums) {
    for (double& each : layers) each /= static_cast<double>(count);
  }
}

}  // namespace

void DriftSteps::add(const Json& step, bool is_new_prompt) {
  ++steps;
  if (is_new_prompt) ++prompts;
  kl += number_of(step.at("kl")).value_or(0);
  for (const auto& [field, array] : step.at("layers").items()) {
    const ByLayer numbers = numbers_of(array);
    add_to(means[field], numbers);
    ByLayer& most = largest[field];
    most.resize(std::max(most.size(), numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) most[i] = std::max(most[i], numbers[i]);
    std::vector<ByLayer>& own = by_prompt[field];
    if (is_new_prompt) own.emplace_back();
    add_to(own.back(), numbers);
    if (field == "l2" && std::ranges::any_of(numbers, [](double x) { return x > 0; })) {
      ++differing;
    }
  }
  for (const auto& [name, fields] : step.at("operators").items()) {
    add_to(operators[name], numbers_of(fields.at("relative")));
  }
  const Json& heads = step.at("weights_kl");
  weights_kl.resize(std::max(weights_kl.size(), heads.size()));
  for (std::size_t i = 0; i < heads.size(); ++i) add_to(weights_kl[i], numbers_of(heads.at(i)));
}

void DriftSteps::finish() {
  if (steps == 0) return;
  kl /= static_cast<double>(steps);
  divide(means, steps);
  divide(operators, steps);
  for (ByLayer& heads : weights_kl) {
    for (double& each : heads) each /= static_cast<double>(steps);
  }
}

DriftFigures drift_figures(const StudyRecords& records) {
  DriftFigures figures;
  for (const StudyRecords::Unit& unit : records.units) {
    ++figures.prompts;
    figures.head_dim = unit.values.at("head_dim").get<std::int64_t>();
    bool is_new = true;
    for (const Json& step : unit.values.at("steps")) {
      const auto number = step.at("step").get<std::int64_t>();
      figures.checkpoints[number].add(step, true);
      if (number == 0) continue;
      figures.generated.add(step, is_new);
      is_new = false;
    }
    if (const Json& reason = unit.values.at("left_out"); !reason.is_null()) {
      figures.left_out = reason.get<std::string>();
    }
  }
  for (auto& [number, steps] : figures.checkpoints) steps.finish();
  figures.generated.finish();
  return figures;
}

Result<DepthTrend> depth_trend(const DriftSteps& steps, std::string_view field,
                               std::uint64_t stream) {
  DepthTrend trend;
  const auto means = steps.means.find(field);
  if (means == steps.means.end() || means->second.empty()) return trend;
  const ByLayer& values = means->second;
  const auto begin = std::ranges::find_if(values, [](double x) { return x > 0; });
  if (begin != values.end()) trend.layer = begin - values.begin();
  const auto first_layer = static_cast<std::size_t>(trend.layer);
  trend.first = values[first_layer];
  trend.last = values.back();
  if (trend.first > 0) trend.ratio = trend.last / trend.first;
  ByLayer layers;
  ByLayer logarithms;
  layers.reserve(values.size());
  logarithms.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    layers.push_back(static_cast<double>(i));
    if (i >= first_layer && values[i] > 0) {
      logarithms.push_back(statistics::logarithm(values[i]) / statistics::logarithm(2));
    }
  }
  // Fewer than three layers, or one value throughout, have no correlation.
  if (const auto found = statistics::spearman(layers, values)) {
    trend.spearman = found->r.value;
    if (std::ssize(values) >= pairs_of_student) trend.p = found->p;
  } else if (found.error().kind != ErrorKind::cannot_tell) {
    return found.error();
  }
  const std::span<const double> from_first = std::span(layers).subspan(first_layer);
  if (logarithms.size() == from_first.size() && from_first.size() > 1) {
    const statistics::CoMoments fit = statistics::co_moments(from_first, logarithms);
    trend.slope = fit.xy / fit.xx;
  }
  const std::vector<ByLayer>& prompts = steps.by_prompt.find(field)->second;
  const auto ratio = [&](std::span<const std::int64_t> drawn) {
    double first = 0;
    double last = 0;
    for (const std::int64_t prompt : drawn) {
      first += prompts[static_cast<std::size_t>(prompt)][first_layer];
      last += prompts[static_cast<std::size_t>(prompt)].back();
    }
    return first > 0 ? last / first : std::numeric_limits<double>::quiet_NaN();
  };
  const auto drawn = statistics::cluster_bootstrap(
      std::ssize(prompts), ratio, {.resamples = ratio_resamples, .stream = stream});
  if (drawn) {
    trend.interval = drawn->percentile;
  } else if (drawn.error().kind != ErrorKind::cannot_tell) {
    return drawn.error();
  }
  return trend;
}

}  // namespace kvsim::experiments
