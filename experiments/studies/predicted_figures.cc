// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/predicted_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "experiments/protocol/step_json.h"
#include "sim/predict/grid_flips.h"

namespace kvsim::experiments {
namespace {

/// What one seeded decoder says of some steps.
struct Decoder {
  std::int64_t prompt = 0;
  std::vector<std::int64_t> steps;
  std::vector<std::vector<double>> relative;  ///< by step and layer
  std::vector<double> logit;                  ///< by step

  /// The predicted step that is next to one, on a scale of factors; of two the earlier one.
  [[nodiscard]] std::size_t nearest(std::int64_t step) const {
    const auto distance = [&](std::int64_t each) {
      return each > step ? static_cast<double>(each) / static_cast<double>(step)
                         : static_cast<double>(step) / static_cast<double>(each);
    };
    const auto found = std::ranges::min_element(
        steps, [&](std::int64_t a, std::int64_t b) { return distance(a) < distance(b); });
    return static_cast<std::size_t>(found - steps.begin());
  }
};

/// One measured step behind a prompt.
struct Step {
  std::int64_t prompt = 0;
  std::int64_t step = 0;
  RecordedStep forced;
  double logit_gain = 0;
  double logit_step = 0;
  std::vector<double> relative;
};

struct Parts {
  std::vector<Decoder> decoders;
  std::vector<Step> steps;
};

Parts parts_of(const StudyRecords& records) {
  Parts parts;
  for (const StudyRecords::Unit& unit : records.units) {
    const Json& values = unit.values;
    const std::vector<RecordedStep> forced = recorded_steps(values.at("steps"));
    for (std::size_t i = 1; i < forced.size(); ++i) {
      parts.steps.push_back({unit.unit.prompt, static_cast<std::int64_t>(i), forced[i],
                             values.at("logit_gain").at(i).get<double>(),
                             values.at("logit_step").at(i).get<double>(),
                             values.at("relative").at(i).get<std::vector<double>>()});
    }
    for (const Json& each : values.at("predicted")) {
      Decoder decoder{unit.unit.prompt, each.at("steps").get<std::vector<std::int64_t>>(),
                      each.at("relative").get<std::vector<std::vector<double>>>(),
                      each.at("logit").get<std::vector<double>>()};
      if (!decoder.steps.empty()) parts.decoders.push_back(std::move(decoder));
    }
  }
  return parts;
}

/// The mean of a decoder's relative L2 behind a layer, each measured step by its nearest one.
double mean_of(const Decoder& decoder, std::size_t layer, const std::vector<Step>& steps) {
  double sum = 0;
  for (const Step& step : steps) {
    sum += decoder.relative.at(decoder.nearest(step.step)).at(layer);
  }
  return sum / static_cast<double>(steps.size());
}

/// How often a state differs, of both.
struct Differing {
  statistics::Count measured;
  statistics::Count predicted;
};

Differing differing_of(const Parts& parts, std::size_t layer) {
  Differing found;
  const auto add = [](statistics::Count& count, double relative) {
    ++count.trials;
    if (relative > 0) ++count.successes;
  };
  for (const Step& step : parts.steps) add(found.measured, step.relative.at(layer));
  for (const Decoder& each : parts.decoders) {
    for (const std::vector<double>& layers : each.relative) add(found.predicted, layers.at(layer));
  }
  return found;
}

/// Few steps that differ say nothing, but where many had to be expected.
bool can_tell(const Differing& found) {
  const auto share = [](const statistics::Count& count) {
    return static_cast<double>(count.successes) / static_cast<double>(count.trials);
  };
  const auto few = [&](const statistics::Count& count, const statistics::Count& other) {
    return static_cast<double>(count.successes) < fewest_events &&
           share(other) * static_cast<double>(count.trials) < 2 * fewest_events;
  };
  if (found.measured.successes == 0 && found.predicted.successes == 0) return true;
  return !few(found.measured, found.predicted) && !few(found.predicted, found.measured);
}

std::vector<LayerComparison> compare_layers(const Parts& parts) {
  std::vector<LayerComparison> layers;
  double before = 0;  // the ratio of the layer before
  for (std::size_t layer = 0; layer < parts.steps.front().relative.size(); ++layer) {
    NumbersByPrompt measured;
    NumbersByPrompt predicted;
    for (const Step& step : parts.steps) measured.add(step.prompt, step.relative.at(layer));
    for (const Decoder& each : parts.decoders) {
      predicted.add(each.prompt, mean_of(each, layer, parts.steps));
    }
    LayerComparison found{
        .measured = measured.mean().value_or(statistics::Estimate{}),
        .predicted = predicted.mean().value_or(statistics::Estimate{}),
    };
    const Differing differing = differing_of(parts, layer);
    found.differing = differing.measured.successes;
    found.predicted_differing = differing.predicted.successes;
    if (can_tell(differing)) {
      found.within = is_within(found.measured.value, found.predicted.value);
    }
    if (found.predicted.value > 0) {
      const double ratio = found.measured.value / found.predicted.value;
      if (before > 0) found.growth = ratio / before;
      found.ratio = ratio;
    }
    before = found.ratio.value_or(0);
    layers.push_back(found);
  }
  return layers;
}

/// Sums of one law over all steps.
struct LawSums {
  double expected = 0;
  double squares = 0;

  void add(double chance, double deviation) {
    expected += chance;
    squares += deviation * deviation;
  }
  [[nodiscard]] FlipComparison compare(std::string error, std::string law, std::int64_t steps,
                                       std::int64_t flips) const {
    FlipComparison found{.error = std::move(error), .law = std::move(law)};
    found.deviation = std::sqrt(squares / static_cast<double>(steps));
    found.expected = expected;
    const auto seen = static_cast<double>(flips);
    if (expected > 0) found.ratio = seen / expected;
    if (seen >= fewest_events || expected >= fewest_events)
      found.within = is_within(seen, expected);
    return found;
  }
};

std::vector<FlipComparison> compare_flips(const Parts& parts, std::int64_t flips) {
  LawSums grid;
  LawSums normal;
  LawSums measured;
  double squares = 0;
  for (const Step& step : parts.steps) {
    const double error = step.forced.top_two_error.value_or(0);
    squares += error * error;
  }
  const double measured_deviation = std::sqrt(squares / static_cast<double>(parts.steps.size()));
  const auto decoders = static_cast<double>(parts.decoders.size());
  for (const Step& step : parts.steps) {
    const double margin = step.forced.on_margin.value_or(0);
    double on_grid = 0;
    double grid_square = 0;
    double sum = 0;
    for (const Decoder& each : parts.decoders) {
      const double deviation = each.logit.at(each.nearest(step.step)) * step.logit_gain;
      on_grid += flip_probability(margin / step.logit_step, deviation / step.logit_step);
      grid_square += 2 * moved_square(deviation / step.logit_step);
      sum += 2 * deviation * deviation;
    }
    const double deviation = std::sqrt(sum / decoders);
    grid.add(on_grid / decoders, std::sqrt(grid_square / decoders) * step.logit_step);
    normal.add(normal_flip_probability(margin, deviation), deviation);
    measured.add(normal_flip_probability(margin, measured_deviation), measured_deviation);
  }
  const std::int64_t steps = std::ssize(parts.steps);
  return {grid.compare("predicted", "on the grid", steps, flips),
          normal.compare("predicted", "normal", steps, flips),
          measured.compare("measured", "normal", steps, flips)};
}

}  // namespace

bool is_within(double measured, double predicted) {
  return measured <= good_factor * predicted && predicted <= good_factor * measured;
}

Result<PredictedFigures> predicted_figures(const StudyRecords& records) {
  const Parts parts = parts_of(records);
  if (parts.steps.empty()) {
    return Error{ErrorKind::cannot_tell, "no text has a second token: no step has a cache"};
  }
  if (parts.decoders.empty()) {
    return Error{ErrorKind::cannot_tell, "no seeded decoder among the records: no prediction"};
  }
  PredictedFigures figures;
  figures.decoders = std::ssize(parts.decoders);
  figures.steps = std::ssize(parts.steps);
  figures.layers = compare_layers(parts);
  for (const Step& step : parts.steps) figures.flips.add(step.prompt, step.forced.argmax_differs);
  figures.laws = compare_flips(parts, figures.flips.all().successes);
  return figures;
}

}  // namespace kvsim::experiments
