// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary_figures.h"

#include <algorithm>
#include <cmath>

#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

std::optional<double> mean_of(const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  return statistics::moments(numbers).mean;
}

PartedText parted_text(std::int64_t prompt, std::size_t flip,
                       const std::vector<RecordedStep>& steps, const Json& values) {
  PartedText text{.prompt = prompt,
                  .flip = static_cast<double>(flip),
                  .length = static_cast<double>(steps.size())};
  std::vector<double> same;
  std::vector<double> own;
  std::vector<double> apart;
  same.reserve(steps.size());
  own.reserve(steps.size());
  apart.reserve(steps.size());
  for (const RecordedStep& step : steps) {
    if (same.size() <= flip) own.push_back(step.kl);
    same.push_back(step.kl);
  }
  for (const Json& each : values.at("kl_apart")) {
    apart.push_back(number_of(each).value_or(0));
    own.push_back(apart.back());
  }
  text.same_tokens_kl = mean_of(same).value_or(0);
  text.own_tokens_kl = mean_of(own).value_or(0);
  text.apart_kl = mean_of(apart);
  return text;
}

void add(SourceFigures& source, const StudyRecords::Unit& record) {
  const Json& values = record.values;
  source.against = values.at("against").get<std::string>();
  if (values.contains("refused")) {
    source.refused = values.at("refused").get<std::string>();
    return;
  }
  ++source.texts;
  const std::vector<RecordedStep> steps = recorded_steps(values.at("forced"));
  for (const RecordedStep& step : steps) {
    if (!step.on_margin || !step.on_margin_ulps || !step.top_two_error) continue;
    source.steps.push_back({.prompt = record.unit.prompt,
                            .margin = *step.on_margin,
                            .ulps = *step.on_margin_ulps,
                            .error = *step.top_two_error,
                            .largest = step.largest_logit_difference,
                            .flips = step.argmax_differs});
  }
  const Json& flip = values.at("flip");
  if (flip.is_null()) return;
  // A step that is none throws here.
  static_cast<void>(values.at("forced").at("kl").at(flip.get<std::size_t>()));
  source.parted.push_back(parted_text(record.unit.prompt, flip.get<std::size_t>(), steps, values));
}

}  // namespace

double SourceFigures::error_size() const {
  if (steps.empty()) return 0;
  double squares = 0;
  for (const MarginStep& step : steps) squares += step.error * step.error;
  return std::sqrt(squares / static_cast<double>(steps.size()));
}

std::int64_t SourceFigures::flips() const {
  return std::ranges::count_if(steps, &MarginStep::flips);
}

std::int64_t BoundaryFigures::flips() const {
  std::int64_t count = 0;
  for (const auto& [name, source] : sources) count += source.flips();
  return count;
}

BoundaryFigures boundary_figures(const StudyRecords& records) {
  BoundaryFigures figures;
  for (const StudyRecords::Unit& record : records.units) {
    const std::string& name = record.unit.part;
    if (!figures.sources.contains(name)) figures.order.push_back(name);
    add(figures.sources[name], record);
  }
  return figures;
}

}  // namespace kvsim::experiments
