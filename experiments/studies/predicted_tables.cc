// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/predicted_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

std::string_view verdict(const std::optional<bool>& within) {
  if (!within.has_value()) return "cannot tell";
  return *within ? "yes" : "no";
}

Json verdict_json(const std::optional<bool>& within) {
  return within.has_value() ? Json(*within) : Json(nullptr);
}

SummaryTable layers_table(const PredictedFigures& figures, Json& result) {
  SummaryTable table;
  table.title = "relative L2 of the hidden state behind each layer, mean of the steps";
  table.columns = {{"layer", "layer", ""},
                   {"measured", "measured (95 %)", ""},
                   {"predicted", "predicted (95 %)", ""},
                   {"ratio", "measured / predicted", ""},
                   {"within", "within 2x", "", true},
                   {"growth", "of this layer alone", ""},
                   {"differing", "differing", "steps"},
                   {"predicted_differing", "predicted", "of the decoders' steps"}};
  result["layers"] = Json::array();
  for (std::size_t i = 0; i < figures.layers.size(); ++i) {
    const LayerComparison& layer = figures.layers[i];
    table.rows.push_back({cell(static_cast<std::int64_t>(i)), cell(std::optional(layer.measured)),
                          cell(std::optional(layer.predicted)), cell(layer.ratio),
                          cell(verdict(layer.within)), cell(layer.growth), cell(layer.differing),
                          cell(layer.predicted_differing)});
    result["layers"].push_back({{"measured", json_of(layer.measured)},
                                {"predicted", json_of(layer.predicted)},
                                {"ratio", json_of(layer.ratio)},
                                {"growth", json_of(layer.growth)},
                                {"differing", layer.differing},
                                {"predicted_differing", layer.predicted_differing},
                                {"within", verdict_json(layer.within)}});
  }
  table.notes = {
      fmt::format("predicted: {} seeded decoders of the model's shape and kernels, of the prompts' "
                  "lengths and the activations' sizes with the first arm; nothing of the second",
                  figures.decoders),
      "of this layer alone: growth from the layer before, measured / predicted",
      fmt::format("cannot tell: fewer than {} steps differ in the model or in the decoders",
                  fewest_events)};
  return table;
}

SummaryTable flips_table(const PredictedFigures& figures, Json& result) {
  SummaryTable table;
  table.title = "tokens that flip, after the same tokens";
  table.columns = {{"error", "error", "", true},
                   {"law", "law", "", true},
                   {"deviation", "error", "logits"},
                   {"expected", "expected", "flips"},
                   {"share", "expected", "% of steps"},
                   {"flips", "flips", ""},
                   {"measured", "measured (95 %)", "% of steps"},
                   {"ratio", "measured / expected", ""},
                   {"within", "within 2x", "", true}};
  const std::int64_t flips = figures.flips.all().successes;
  result["laws"] = Json::array();
  for (const FlipComparison& law : figures.laws) {
    const double share = 100 * law.expected / static_cast<double>(figures.steps);
    table.rows.push_back({cell(law.error), cell(law.law), cell(law.deviation), cell(law.expected),
                          cell(share), cell(flips), percent_cell(figures.flips.share()),
                          cell(law.ratio), cell(verdict(law.within))});
    result["laws"].push_back({{"error", law.error},
                              {"law", law.law},
                              {"deviation", json_of(law.deviation)},
                              {"expected", json_of(law.expected)},
                              {"ratio", json_of(law.ratio)},
                              {"within", verdict_json(law.within)}});
  }
  table.notes = {
      "error: by how much the difference of the two largest logits moves, root mean square",
      "on the grid: both logits are rounded to their format; normal: Phi(-margin / error)",
      fmt::format("cannot tell: fewer than {} flips both expected and counted", fewest_events)};
  return table;
}

std::string flip_words(const FlipComparison& law, std::int64_t flips) {
  if (!law.within) {
    return fmt::format("{} flips, {:.3g} expected: too few to tell", flips, law.expected);
  }
  return fmt::format("{} flips, {:.3g} expected", flips, law.expected) +
         (law.ratio ? fmt::format(", ratio {:.2g}", *law.ratio) : std::string());
}

}  // namespace

StudySummary summarize_predicted(const PredictedFigures& figures) {
  StudySummary summary;
  const std::int64_t within = std::ranges::count_if(
      figures.layers, [](const LayerComparison& layer) { return layer.within.value_or(false); });
  const std::int64_t layers = std::ssize(figures.layers);
  const std::int64_t flips = figures.flips.all().successes;
  const std::int64_t unclear = std::ranges::count_if(
      figures.layers, [](const LayerComparison& layer) { return !layer.within.has_value(); });
  summary.headline =
      fmt::format("{} of {} layers within 2x of what is predicted{}; {}.", within, layers,
                  unclear > 0 ? fmt::format(", {} cannot tell", unclear) : std::string(),
                  flip_words(figures.laws.front(), flips));
  summary.result = {{"decoders", figures.decoders},
                    {"steps", figures.steps},
                    {"layers_within", within},
                    {"layers_unclear", unclear},
                    {"layers_all", layers},
                    {"flips", flips},
                    {"flip_share", json_of(figures.flips.share())}};
  summary.tables.push_back(layers_table(figures, summary.result));
  summary.tables.push_back(flips_table(figures, summary.result));
  return summary;
}

}  // namespace kvsim::experiments
