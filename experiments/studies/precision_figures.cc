// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/precision_figures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t mean_resamples = 2000;
constexpr std::array<const char*, 2> sides{"on", "off"};

/// What one arm chose at a step, and whether the second head chose it.
struct Chosen {
  std::int64_t token = 0;
  bool by_head = false;
};

Chosen chosen(const Json& side, std::size_t step, std::optional<double> margin_ulps) {
  const Json& head = side.at("head");
  const bool by_head = margin_ulps && !head.empty() &&
                       number_of(side.at("margin_ulps").at(step)).value_or(0) <= *margin_ulps;
  const Json& from = by_head ? head : side.at("base");
  return {from.at(step).get<std::int64_t>(), by_head};
}

metrics::ExampleRun run_of(const Json& side) {
  metrics::ExampleRun run;
  run.tokens = side.at("tokens").get<std::vector<std::int64_t>>();
  for (const Json& each : side.at("top1")) {
    run.top1_probabilities.push_back(std::clamp(number_of(each).value_or(0), 0.0, 1.0));
  }
  run.is_correct = side.at("correct").is_boolean() && side.at("correct").get<bool>();
  return run;
}

}  // namespace

PrecisionSteps precision_steps(const StudyRecords& records, const std::string& row,
                               std::optional<double> margin_ulps) {
  PrecisionSteps steps;
  for (const StudyRecords::Unit& unit : records.units) {
    const Json& values = unit.values.at("rows").at(row);
    const auto reference =
        unit.values.at("reference").at("tokens").get<std::vector<std::int64_t>>();
    std::vector<double> agree;
    std::vector<double> flip;
    std::vector<double> head;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const Chosen on = chosen(values.at("on"), i, margin_ulps);
      const Chosen off = chosen(values.at("off"), i, margin_ulps);
      flip.push_back(on.token != off.token ? 1 : 0);
      for (const Chosen& each : {on, off}) {
        agree.push_back(each.token == reference[i] ? 1 : 0);
        head.push_back(each.by_head ? 1 : 0);
      }
    }
    steps.agree.push_back(std::move(agree));
    steps.flip.push_back(std::move(flip));
    steps.head.push_back(std::move(head));
  }
  return steps;
}

Result<PrecisionTexts> precision_texts(const StudyRecords& records, const std::string& row) {
  PrecisionTexts texts;
  std::vector<std::vector<metrics::ExampleRun>> examples;
  examples.reserve(records.units.size());
  for (const StudyRecords::Unit& unit : records.units) {
    const Json& values = unit.values.at("rows").at(row);
    std::vector<metrics::ExampleRun> runs;
    for (const char* name : sides) {
      const Json& side = values.at(name);
      runs.push_back(run_of(side));
      for (const Json& each : side.at("kl")) {
        const double kl = number_of(each).value_or(0);
        texts.kl += kl;
        texts.largest_kl = std::max(texts.largest_kl, kl);
        ++texts.steps;
      }
    }
    ++texts.texts;
    if (runs.front().tokens != runs.back().tokens) ++texts.parted;
    if (values.at("on").at("correct").is_boolean()) ++texts.answers;
    examples.push_back(std::move(runs));
  }
  if (texts.steps > 0) texts.kl /= static_cast<double>(texts.steps);
  Result<metrics::Reproducibility> metrics = metrics::reproducibility(examples);
  if (!metrics) return metrics.error();
  texts.metrics = std::move(*metrics);
  std::vector<double> indices;
  for (const std::optional<std::int64_t>& index : texts.metrics.div_index) {
    if (index) indices.push_back(static_cast<double>(*index));
  }
  if (!indices.empty()) texts.div_index = statistics::moments(indices).mean;
  return texts;
}

Result<MeanOverPrompts> mean_over_prompts(const std::vector<std::vector<double>>& prompts,
                                          std::uint64_t stream) {
  MeanOverPrompts result;
  std::vector<double> all;
  for (const std::vector<double>& each : prompts) all.insert(all.end(), each.begin(), each.end());
  if (all.empty()) return result;
  result.mean = statistics::moments(all).mean;
  const auto drawn =
      statistics::bootstrap_mean(prompts, {.resamples = mean_resamples, .stream = stream});
  if (drawn) {
    result.interval = drawn->percentile;
  } else if (drawn.error().kind != ErrorKind::cannot_tell) {
    return drawn.error();
  }
  return result;
}

}  // namespace kvsim::experiments
