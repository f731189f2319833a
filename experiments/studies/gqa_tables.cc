// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/gqa_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/statistics/correlation.h"
#include "experiments/statistics/samples.h"
#include "experiments/studies/gqa_sweep.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// What is compared, as records name it and as people read it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> pairs{
    {{"shared", "on/off, shared heads"},
     {"repeated", "on/off, repeated heads"},
     {"between", "shared/repeated, on"}}};

std::optional<double> mean_of(const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  return statistics::moments(numbers).mean;
}

/// Steps of a pair of arms, all prompts together.
struct PairSteps {
  std::int64_t steps = 0;
  std::int64_t differing = 0;
  std::vector<double> first;
  std::vector<double> last;
  std::vector<double> kl;

  void add(const Json& pair) {
    for (std::size_t i = 0; i < pair.at("kl").size(); ++i) {
      ++steps;
      if (pair.at("differs").at(i).get<bool>()) ++differing;
      first.push_back(number_of(pair.at("first").at(i)).value_or(0));
      last.push_back(number_of(pair.at("last").at(i)).value_or(0));
      kl.push_back(number_of(pair.at("kl").at(i)).value_or(0));
    }
  }
};

/// The model under some kernels.
struct ModelKernels {
  std::string name;
  std::int64_t factor = 1;
  std::string left_out;
  std::map<std::string, PairSteps, std::less<>> pairs;
};

std::vector<ModelKernels> model_kernels(const StudyRecords& records) {
  std::vector<ModelKernels> list;
  for (const StudyRecords::Unit& unit : records.units) {
    if (!unit.values.contains("kernels")) continue;
    for (const auto& [name, values] : unit.values.at("kernels").items()) {
      auto found = std::ranges::find(list, name, &ModelKernels::name);
      if (found == list.end()) {
        list.push_back({.name = name, .left_out = {}, .pairs = {}});
        found = list.end() - 1;
      }
      if (values.contains("left_out")) {
        found->left_out = values.at("left_out").get<std::string>();
        continue;
      }
      found->factor = values.at("factor").get<std::int64_t>();
      for (const auto& [pair, title] : pairs) {
        found->pairs[std::string(pair)].add(values.at(std::string(pair)));
      }
    }
  }
  return list;
}

SummaryTable model_table(const std::vector<ModelKernels>& kernels, Json& result) {
  SummaryTable table;
  table.columns = {{"kernels", "kernels", "", true},
                   {"pair", "compared", "", true},
                   {"steps", "steps", ""},
                   {"differing", "differing", "steps"},
                   {"first", "relative L2, first layer", ""},
                   {"last", "last layer", ""},
                   {"kl", "KL", "nats"}};
  std::int64_t factor = 1;
  for (const ModelKernels& row : kernels) {
    if (!row.left_out.empty()) {
      table.notes.push_back(fmt::format("{} left out: {}", row.name, row.left_out));
      result["model"][row.name] = {{"left_out", row.left_out}};
      continue;
    }
    factor = row.factor;
    for (const auto& [pair, title] : pairs) {
      const PairSteps& steps = row.pairs.find(pair)->second;
      table.rows.push_back({cell(row.name), cell(title), cell(steps.steps), cell(steps.differing),
                            cell(mean_of(steps.first)), cell(mean_of(steps.last)),
                            cell(mean_of(steps.kl))});
      result["model"][row.name][std::string(pair)] = {{"steps", steps.steps},
                                                      {"differing", steps.differing},
                                                      {"first", json_of(mean_of(steps.first))},
                                                      {"last", json_of(mean_of(steps.last))},
                                                      {"kl", json_of(mean_of(steps.kl))}};
    }
  }
  result["factor"] = factor;
  table.title = fmt::format(
      "the model, {} query heads for each K/V head, against itself with a K/V head for each",
      factor);
  table.notes.emplace_back("one reduction: kernels whose sums do not depend on the shape");
  return table;
}

/// The seeded decoders of one value.
struct SweepFigures {
  std::vector<double> first;
  std::vector<double> last;
  std::map<std::string, std::vector<double>, std::less<>> amplification;  ///< by source
  std::map<std::string, std::vector<double>, std::less<>> correlation;
};

std::map<std::int64_t, SweepFigures> sweep_figures(const StudyRecords& records,
                                                   const GqaSweep& sweep) {
  std::map<std::int64_t, SweepFigures> figures;
  for (const StudyRecords::Unit& unit : records.units) {
    const std::optional<SweepPlace> place = sweep_place(unit.unit.part);
    if (!place || place->sweep->part != sweep.part) continue;
    SweepFigures& at = figures[place->value];
    at.first.push_back(unit.values.at("relative").front().get<double>());
    at.last.push_back(unit.values.at("relative").back().get<double>());
    if (!unit.values.contains("grouped")) continue;
    for (const Json& error : unit.values.at("grouped").at("errors")) {
      const auto source = error.at("source").get<std::string>();
      at.amplification[source].push_back(error.at("amplification").get<double>());
      at.correlation[source].push_back(error.at("correlation").get<double>());
    }
  }
  return figures;
}

/// Whether the first layer's drift follows the value, seed by seed.
Json trend_json(const std::map<std::int64_t, SweepFigures>& figures) {
  std::vector<double> x;
  std::vector<double> y;
  for (const auto& [value, at] : figures) {
    for (const double first : at.first) {
      x.push_back(static_cast<double>(value));
      y.push_back(first);
    }
  }
  const auto found = statistics::spearman(x, y);
  if (!found) return {{"spearman", nullptr}, {"p", nullptr}, {"pairs", x.size()}};
  return {{"spearman", json_of(found->r)}, {"p", json_of(found->p)}, {"pairs", found->pairs}};
}

std::string trend_note(const Json& trend) {
  if (trend.at("spearman").is_null()) return "no trend can be told";
  return fmt::format(
      "first layer against the value, seed by seed: Spearman {:.2f} ({:.2f} to "
      "{:.2f}), p {:.3g}",
      trend.at("spearman").at("value").get<double>(), trend.at("spearman").at("low").get<double>(),
      trend.at("spearman").at("high").get<double>(), trend.at("p").get<double>());
}

SummaryTable sweep_table(const StudyRecords& records, const GqaSweep& sweep, Json& result) {
  const std::map<std::int64_t, SweepFigures> figures = sweep_figures(records, sweep);
  SummaryTable table;
  table.title = fmt::format("seeded decoders that differ in {} alone, on/off", sweep.part);
  table.columns = {{"value", std::string(sweep.part), ""},
                   {"seeds", "seeds", ""},
                   {"first", "relative L2, first layer", ""},
                   {"smallest", "smallest", ""},
                   {"largest", "largest", ""},
                   {"last", "last layer", ""},
                   {"growth", "last / first", ""}};
  Json& values = result[std::string(sweep.part)];
  values["values"] = Json::array();
  for (const auto& [value, at] : figures) {
    const double first = mean_of(at.first).value_or(0);
    const double last = mean_of(at.last).value_or(0);
    const std::optional<double> growth = first > 0 ? std::optional(last / first) : std::nullopt;
    table.rows.push_back({cell(value), cell(std::ssize(at.first)), cell(first),
                          cell(std::ranges::min(at.first)), cell(std::ranges::max(at.first)),
                          cell(last), cell(growth)});
    values["values"].push_back({{"value", value},
                                {"seeds", at.first.size()},
                                {"first", first},
                                {"last", last},
                                {"growth", json_of(growth)}});
  }
  values["trend"] = trend_json(figures);
  table.notes = {trend_note(values["trend"])};
  return table;
}

SummaryTable errors_table(const StudyRecords& records, Json& result) {
  SummaryTable table;
  table.title = "errors of attention over the query heads that share a K/V head";
  table.columns = {{"R", "R", ""},
                   {"source", "rounding of", "", true},
                   {"correlation", "correlation in a group", ""},
                   {"amplification", "sum over a group, against own heads", ""}};
  result["errors"] = Json::array();
  for (const auto& [value, at] : sweep_figures(records, gqa_sweeps.front())) {
    for (const auto& [source, amplification] : at.amplification) {
      const double mean = mean_of(amplification).value_or(1);
      const double correlation = mean_of(at.correlation.find(source)->second).value_or(0);
      table.rows.push_back({cell(value), cell(source), cell(correlation), cell(mean)});
      result["errors"].push_back({{"R", value},
                                  {"source", source},
                                  {"correlation", correlation},
                                  {"amplification", mean}});
    }
  }
  table.notes = {"1: as with a K/V head for each query head; at most the root of R"};
  return table;
}

/// Steps of shared against repeated heads with kernels of that name.
std::string model_sentence(const std::vector<ModelKernels>& kernels, std::string_view name) {
  const auto found = std::ranges::find(kernels, name, &ModelKernels::name);
  if (found == kernels.end() || !found->left_out.empty()) return {};
  const PairSteps& steps = found->pairs.find("between")->second;
  return fmt::format("with {} in {} of {} steps", name, steps.differing, steps.steps);
}

}  // namespace

Result<StudySummary> summarize_gqa(const StudyRecords& records) {
  if (records.units.empty()) return Error{ErrorKind::cannot_tell, "no records"};
  StudySummary summary;
  summary.result = Json::object();
  const std::vector<ModelKernels> kernels = model_kernels(records);
  if (!kernels.empty()) summary.tables.push_back(model_table(kernels, summary.result));
  for (const GqaSweep& sweep : gqa_sweeps) {
    SummaryTable table = sweep_table(records, sweep, summary.result);
    if (!table.rows.empty()) summary.tables.push_back(std::move(table));
  }
  SummaryTable errors = errors_table(records, summary.result);
  if (!errors.rows.empty()) summary.tables.push_back(std::move(errors));
  std::string parts;
  for (const ModelKernels& row : kernels) {
    const std::string sentence = model_sentence(kernels, row.name);
    if (!sentence.empty()) parts += (parts.empty() ? "" : ", ") + sentence;
  }
  summary.headline = parts.empty() ? "No model was compared with itself."
                                   : "Shared and repeated K/V heads differ " + parts + ".";
  return summary;
}

}  // namespace kvsim::experiments
