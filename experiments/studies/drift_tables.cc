// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/drift_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/metrics/drift.h"
#include "experiments/protocol/forced_drift.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t first_generated = 1;  ///< the step that the paper looks at

/// What arXiv 2604.15409 reports of Llama-2-7B at that step: L2 behind the first and last layer.
constexpr double paper_first_l2 = 3.45;
constexpr double paper_last_l2 = 361.96;

/// What tables say together: "first token" or all checkpoints.
struct Part {
  std::string_view name;   ///< in the result
  std::string_view title;  ///< behind a comma
  const DriftSteps& steps;
};

const ByLayer& field_of(const NamedByLayer& fields, std::string_view name) {
  return fields.find(name)->second;
}

double mean_of(const ByLayer& numbers) { return statistics::moments(numbers).mean; }

/// Where the largest of them is.
std::int64_t place_of_largest(const ByLayer& numbers) {
  return std::ranges::max_element(numbers) - numbers.begin();
}

SummaryCell ratio_cell(const DepthTrend& trend) {
  SummaryCell shown = cell(trend.ratio);
  if (trend.interval && trend.ratio) {
    shown.text += fmt::format(" ({:.3g} to {:.3g})", trend.interval->low, trend.interval->high);
  }
  return shown;
}

Json json_of_trend(const DepthTrend& trend) {
  return {{"layer", trend.layer},
          {"first", json_of(trend.first)},
          {"last", json_of(trend.last)},
          {"ratio", json_of(trend.ratio)},
          {"ratio_interval", trend.interval ? json_of(*trend.interval) : Json(nullptr)},
          {"spearman", json_of(trend.spearman)},
          {"p", json_of(trend.p)},
          {"log2_slope", json_of(trend.slope)}};
}

SummaryTable layers_table(const Part& part, Json& result) {
  SummaryTable table;
  table.title = fmt::format("hidden state behind each layer, {}", part.title);
  table.columns = {{"layer", "layer", ""},
                   {"norm", "norm", ""},
                   {"l2", "L2", ""},
                   {"relative", "relative L2", ""},
                   {"cosine_distance", "1 - cosine", ""},
                   {"median_ulps", "median", "ulp"},
                   {"largest_ulps", "largest", "ulp"},
                   {"massive", "massive", "elements"},
                   {"rest_l2", "L2, rest", ""},
                   {"rest_relative", "relative, rest", ""}};
  const DriftSteps& at = part.steps;
  for (std::size_t layer = 0; layer < field_of(at.means, "l2").size(); ++layer) {
    std::vector<SummaryCell> row{cell(static_cast<std::int64_t>(layer))};
    for (const SummaryColumn& column : std::span(table.columns).subspan(1)) {
      const bool is_largest = column.key == "largest_ulps";
      row.push_back(cell(field_of(is_largest ? at.largest : at.means, column.key)[layer]));
    }
    table.rows.push_back(std::move(row));
  }
  for (const auto& [field, values] : at.means) result[field] = values;
  result["largest_ulps"] = field_of(at.largest, "largest_ulps");
  table.notes = {fmt::format("massive: above {} times the median magnitude of the vector; rest: "
                             "without those elements",
                             metrics::massive_factor),
                 "ulp: unit in the last place of the larger of the two, in the format of hidden "
                 "states; largest: of all prompts; else means"};
  return table;
}

Result<SummaryTable> depth_table(const Part& part, Json& result) {
  SummaryTable table;
  table.title = fmt::format("drift against depth, {}", part.title);
  table.columns = {{"quantity", "quantity", "", true},
                   {"layer", "from layer", ""},
                   {"first", "there", ""},
                   {"last", "last layer", ""},
                   {"ratio", "last / there (95 %)", ""},
                   {"spearman", "Spearman with depth", ""},
                   {"p", "p", ""},
                   {"slope", "slope", "log2 per layer"}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> rows{
      {{"L2", "l2"},
       {"relative L2", "relative"},
       {"L2, rest", "rest_l2"},
       {"relative L2, rest", "rest_relative"},
       {"median ulp", "median_ulps"}}};
  std::uint64_t stream = 0;
  for (const auto& [name, field] : rows) {
    const Result<DepthTrend> trend = depth_trend(part.steps, field, stream++);
    if (!trend) return trend.error();
    table.rows.push_back({cell(name), cell(trend->layer), cell(trend->first), cell(trend->last),
                          ratio_cell(*trend), cell(trend->spearman), cell(trend->p),
                          cell(trend->slope)});
    result["depth"][std::string(field)] = json_of_trend(*trend);
  }
  table.notes = {"from layer: the first behind which anything differs"};
  const Json& relative = result["depth"]["relative"];
  const auto relative_first = relative.at("first").get<double>();
  const auto relative_last = relative.at("last").get<double>();
  if (relative_first > 0 && relative_last > 0) {
    const double first = paper_first_l2 / relative_first;
    const double last = paper_last_l2 / relative_last;
    result["paper"] = {{"first_l2", paper_first_l2},
                       {"last_l2", paper_last_l2},
                       {"norm_needed_first", first},
                       {"norm_needed_last", last}};
    table.notes.push_back(
        fmt::format("the L2 of {} and {} that arXiv 2604.15409 reports of Llama-2-7B "
                    "would take norms of {:.3g} and {:.3g} here",
                    paper_first_l2, paper_last_l2, first, last));
  }
  return table;
}

SummaryTable steps_table(const DriftFigures& figures, Json& result) {
  SummaryTable table;
  table.title = "along the text, both fed the same tokens";
  table.columns = {{"step", "step", ""},
                   {"prompts", "prompts", ""},
                   {"differing", "differing", "prompts"},
                   {"first_relative", "relative L2, first layer", ""},
                   {"last_relative", "last layer", ""},
                   {"last_l2", "L2, last layer", ""},
                   {"last_norm", "norm there", ""},
                   {"kl", "KL", "nats"}};
  result["steps"] = Json::array();
  for (const auto& [step, at] : figures.checkpoints) {
    const ByLayer& relative = field_of(at.means, "relative");
    const double l2 = field_of(at.means, "l2").back();
    const double norm = field_of(at.means, "norm").back();
    table.rows.push_back({cell(step), cell(at.prompts), cell(at.differing), cell(relative.front()),
                          cell(relative.back()), cell(l2), cell(norm), cell(at.kl)});
    result["steps"].push_back({{"step", step},
                               {"prompts", at.prompts},
                               {"differing", at.differing},
                               {"first_relative", relative.front()},
                               {"last_relative", relative.back()},
                               {"last_l2", l2},
                               {"last_norm", norm},
                               {"kl", json_of(at.kl)}});
  }
  table.notes = {"step 0 is the pass over the prompt, which both make alike"};
  return table;
}

SummaryTable operators_table(const DriftFigures& figures, const DriftSteps& first, Json& result) {
  SummaryTable table;
  table.title = "relative L2 of what the operators give";
  table.columns = {{"operator", "operator", "", true},
                   {"first_token", "first token, first layer", ""},
                   {"first_token_largest", "largest", ""},
                   {"first", "checkpoints, first layer", ""},
                   {"mean", "mean of layers", ""},
                   {"largest", "largest", ""},
                   {"layer", "at layer", ""}};
  for (const DriftOperator& row : drift_operators()) {
    const auto found = figures.generated.operators.find(row.name);
    const auto at_first = first.operators.find(row.name);
    if (found == figures.generated.operators.end() || at_first == first.operators.end()) continue;
    const ByLayer& layers = found->second;
    table.rows.push_back({cell(row.name), cell(at_first->second.front()),
                          cell(std::ranges::max(at_first->second)), cell(layers.front()),
                          cell(mean_of(layers)), cell(std::ranges::max(layers)),
                          cell(place_of_largest(layers))});
    result["operators"][std::string(row.name)] = layers;
    result["operators_first_token"][std::string(row.name)] = at_first->second;
  }
  table.notes = {"query, key: behind RoPE; PV: the output of attention; MLP: its last projection"};
  if (figures.left_out.empty()) {
    table.notes.emplace_back(
        "scores and weights: computed in binary64 from the query and the cached keys of each arm");
  } else {
    table.notes.push_back("scores and weights left out: " + figures.left_out);
  }
  return table;
}

SummaryTable weights_table(const DriftSteps& at, Json& result) {
  SummaryTable table;
  table.title = "KL of attention weights by query head, mean of the checkpoints";
  table.columns = {{"layer", "layer", ""},
                   {"heads", "heads", ""},
                   {"mean", "mean", "nats"},
                   {"largest", "largest", "nats"},
                   {"head", "head", ""}};
  for (std::size_t layer = 0; layer < at.weights_kl.size(); ++layer) {
    const ByLayer& heads = at.weights_kl[layer];
    table.rows.push_back({cell(static_cast<std::int64_t>(layer)), cell(std::ssize(heads)),
                          cell(mean_of(heads)), cell(std::ranges::max(heads)),
                          cell(place_of_largest(heads))});
  }
  result["weights_kl"] = at.weights_kl;
  return table;
}

}  // namespace

Result<StudySummary> summarize_drift(const DriftFigures& figures) {
  const auto found = figures.checkpoints.find(first_generated);
  if (found == figures.checkpoints.end() || !found->second.means.contains("l2")) {
    return Error{ErrorKind::cannot_tell, "no text has a second token: no step has a cache"};
  }
  const DriftSteps& first = found->second;
  const DriftSteps& generated = figures.generated;
  StudySummary summary;
  summary.result = {
      {"prompts", figures.prompts},     {"head_dim", figures.head_dim},
      {"with_step", first.prompts},     {"differing_first_token", first.differing},
      {"checkpoints", generated.steps}, {"differing_checkpoints", generated.differing}};
  const std::array parts{Part{"first_token", "first generated token", first},
                         Part{"generated", "mean of the checkpoints behind the prompt", generated}};
  for (const Part& part : parts) {
    Json& result = summary.result[std::string(part.name)];
    SummaryTable layers = layers_table(part, result);
    Result<SummaryTable> depth = depth_table(part, result);
    if (!depth) return depth.error();
    if (part.steps.differing == 0) continue;  // tables of zeros
    summary.tables.push_back(std::move(layers));
    summary.tables.push_back(std::move(*depth));
  }
  summary.tables.push_back(steps_table(figures, summary.result));
  if (generated.differing > 0 && !generated.operators.empty()) {
    summary.tables.push_back(operators_table(figures, first, summary.result));
  }
  if (generated.differing > 0 && !generated.weights_kl.empty()) {
    summary.tables.push_back(weights_table(generated, summary.result));
  }
  const ByLayer& relative = field_of(generated.means, "relative");
  summary.headline = fmt::format(
      "Hidden states differ at the first generated token of {} of {} prompts; at all checkpoints "
      "by {:.2g} of their norm behind the first layer, {:.2g} behind the last.",
      first.differing, first.prompts, relative.front(), relative.back());
  return summary;
}

}  // namespace kvsim::experiments
