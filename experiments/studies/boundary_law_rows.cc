// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary_law_rows.h"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/by_prompt.h"
#include "experiments/studies/boundary_law.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

SummaryTable law_table() {
  SummaryTable table;
  table.title = "the law: P(flip) = Phi(constant + slope * margin / error)";
  table.columns = {{"source", "source", "", true},
                   {"steps", "steps", ""},
                   {"flips", "flips", ""},
                   {"constant", "constant (95 %)", ""},
                   {"slope", "slope (95 %)", ""},
                   {"predicted_flips", "predicted", "flips"},
                   {"normal_flips", "normal law", "flips"}};
  table.notes = {
      "error: root mean square of a source's; normal law: constant 0 and slope -1, which "
      "normal errors would give",
      "predicted: the sum of chances, of each half of the prompts by the other one",
      "-: no flips, flips at one margin alone, or too few"};
  return table;
}

SummaryTable quality_table() {
  SummaryTable table;
  table.title = "how well it predicts the other half of the prompts";
  table.columns = {{"source", "source", "", true},      {"brier_base", "Brier, base rate", ""},
                   {"brier_fitted", "the law", ""},     {"brier_normal", "normal law", ""},
                   {"ks_distance", "errors, KS d", ""}, {"ks_p", "p", ""},
                   {"ks_prompts", "prompts", ""}};
  table.notes = {
      "Brier: mean squared distance of chance and outcome; base rate: the share of flips "
      "as every step's chance",
      "KS: errors / their size against the normal law, d of all steps, p of one step a "
      "prompt"};
  return table;
}

/// Upper ends of margin ÷ error.
struct MarginBin {
  double to = 0;
  const char* heading = "";
};
constexpr std::array<MarginBin, 8> margin_bins{
    {{0, "0"},
     {0.5, "up to 0.5"},
     {1, "up to 1"},
     {2, "up to 2"},
     {4, "up to 4"},
     {8, "up to 8"},
     {16, "up to 16"},
     {std::numeric_limits<double>::infinity(), "above"}}};

struct CalibrationBin {
  CountsByPrompt flips;
  double normal = 0;
  double fitted = 0;
};

void add_calibration(const FlipLaw& law, StudySummary& summary) {
  SummaryTable table;
  table.title = "calibration, all sources: flips by margin in units of the error";
  table.columns = {{"margin", "margin / error", "", true},
                   {"steps", "steps", ""},
                   {"flips", "flips", ""},
                   {"observed", "observed (95 %)", ""},
                   {"fitted", "the law", "%"},
                   {"normal", "normal law", "%"}};
  std::array<CalibrationBin, margin_bins.size()> bins;
  for (const LawPrediction& each : law.predictions) {
    std::size_t bin = 0;
    while (each.margin > margin_bins[bin].to) ++bin;
    bins[bin].flips.add(each.prompt, each.flips);
    bins[bin].normal += each.normal;
    bins[bin].fitted += each.fitted.value_or(0);
  }
  Json& result = summary.result["calibration"];
  result = Json::object();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const statistics::Count& count = bins[i].flips.all();
    if (count.trials == 0) continue;
    const auto percent = [&](double sum) { return 100 * sum / static_cast<double>(count.trials); };
    const double normal = percent(bins[i].normal);
    const auto fitted = law.expected_fitted ? std::optional(percent(bins[i].fitted)) : std::nullopt;
    const auto observed = bins[i].flips.share();
    table.rows.push_back({cell(margin_bins[i].heading), cell(count.trials), cell(count.successes),
                          percent_cell(observed), cell(fitted), cell(normal)});
    result[margin_bins[i].heading] = {{"steps", count.trials},
                                      {"flips", count.successes},
                                      {"observed", json_of(observed)},
                                      {"law_percent", json_of(fitted)},
                                      {"normal_percent", json_of(normal)}};
  }
  if (!table.rows.empty()) summary.tables.push_back(std::move(table));
}

void add_rows(const std::string& name, const FlipLaw& law, SummaryTable& laws,
              SummaryTable& quality, Json& result) {
  const std::optional<BrierScores>& brier = law.brier;
  const auto base = brier ? std::optional(brier->base) : std::nullopt;
  const auto normal = brier ? std::optional(brier->normal) : std::nullopt;
  const auto fitted = brier ? brier->fitted : std::nullopt;
  const auto normal_flips = brier ? std::optional(law.expected_normal) : std::nullopt;
  const std::optional<statistics::KolmogorovSmirnov>& ks = law.ks_by_prompt;
  const auto p = ks ? std::optional(ks->p) : std::nullopt;
  CountsByPrompt prompts;
  for (const LawPrediction& each : law.predictions) prompts.add(each.prompt, each.flips);
  laws.rows.push_back({cell(name), cell(law.steps), cell(law.flips), cell(law.constant),
                       cell(law.slope), cell(law.expected_fitted), cell(normal_flips)});
  quality.rows.push_back({cell(name), cell(base), cell(fitted), cell(normal), cell(law.ks_distance),
                          cell(p), cell(std::ssize(prompts.prompts()))});
  result = {{"steps", law.steps},
            {"flips", law.flips},
            {"constant", json_of(law.constant)},
            {"slope", json_of(law.slope)},
            {"pseudo_r2", json_of(law.pseudo_r2)},
            {"predicted_steps", law.predictions.size()},
            {"predicted_flips", json_of(law.expected_fitted)},
            {"normal_flips", json_of(normal_flips)},
            {"brier_base", json_of(base)},
            {"brier_law", json_of(fitted)},
            {"brier_normal", json_of(normal)},
            {"ks_distance", json_of(law.ks_distance)},
            {"ks_p", json_of(p)},
            {"prompts", prompts.prompts().size()}};
}

}  // namespace

Result<bool> add_law(const BoundaryFigures& figures, StudySummary& summary) {
  std::vector<LawStep> all;
  SummaryTable laws = law_table();
  SummaryTable quality = quality_table();
  Json& result = summary.result["law"];
  for (std::size_t source = 0; source < figures.order.size(); ++source) {
    const std::string& name = figures.order[source];
    std::vector<LawStep> own;
    for (const MarginStep& step : figures.sources.find(name)->second.steps) {
      own.push_back({step.prompt, source, step.margin, step.error, step.flips});
    }
    const Result<FlipLaw> law = flip_law(own);
    if (!law) return law.error();
    add_rows(name, *law, laws, quality, result[name]);
    all.insert(all.end(), own.begin(), own.end());
  }
  const Result<FlipLaw> law = flip_law(all);
  if (!law) return law.error();
  add_rows("all", *law, laws, quality, result["all"]);
  summary.tables.push_back(std::move(laws));
  summary.tables.push_back(std::move(quality));
  add_calibration(*law, summary);
  if (!law->slope)
    summary.headline += " So few flips cannot tell how their chance falls with the margin.";
  return true;
}

}  // namespace kvsim::experiments
