// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/property_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "sim/decoder/plants.h"

namespace kvsim {
namespace {

constexpr std::string_view schema = "kvsim.property/1";

/// How a property stands after its runs.
std::string_view verdict(const PropertyResult& result) {
  if (!result.property->is_canary) return result.tally.violation ? "violated" : "holds";
  if (result.tally.violation) return result.fails ? "violated" : "violated, as it must be";
  return result.fails ? "not violated, as it must be" : "not violated yet";
}

Json run_json(const fuzz::PropertyCase& run, const fuzz::PropertyTally& tally) {
  Json out = Json::object();
  out["property"] = run.property;
  out["runs"] = tally.runs;
  out["holds"] = !tally.violation.has_value();
  if (tally.violation) {
    out["run"] = run.run;
    out["reason"] = *tally.violation;
  }
  return out;
}

}  // namespace

Report property_list_report() {
  Report report;
  report.schema = schema;
  report.command = "fuzz property list";
  report.input = Json::object();
  Table table;
  table.columns = {{"property", "property", "", Align::left},
                   {"says", "what holds", "", Align::left},
                   {"source", "source", "", Align::left}};
  for (const fuzz::Property& property : fuzz::properties()) {
    table.rows.push_back({property.name, property.says, property.source});
  }
  report.result = Json::object();
  report.result["properties"] = rows_as_json(table);
  report.tables.push_back(std::move(table));
  return report;
}

Report property_report(const std::string& name, std::uint64_t seed,
                       const std::vector<PropertyResult>& results) {
  Report report;
  report.schema = schema;
  report.command = "fuzz property " + name;
  report.input = Json::object();
  report.input["seed"] = seed;
  report.result = Json::object();
  report.result["properties"] = Json::array();
  Table table;
  table.columns = {{"property", "property", "", Align::left},
                   {"runs", "runs", "", Align::right},
                   {"verdict", "verdict", "", Align::left}};
  std::int64_t failed = 0;
  for (const PropertyResult& result : results) {
    if (result.last.plant != Plant::none) {
      report.input["plant"] = std::string(to_string(result.last.plant));
    }
    if (result.fails) ++failed;
    table.rows.push_back({result.property->name,
                          Cell(fmt::to_string(result.tally.runs), Json(result.tally.runs)),
                          verdict(result)});
    Json row = run_json(result.last, result.tally);
    if (!result.file.empty()) row["file"] = result.file;
    report.result["properties"].push_back(std::move(row));
    if (!result.tally.violation || !result.fails) continue;
    table.notes.push_back(fmt::format("{}, run {} of seed {}: {}", result.property->name,
                                      result.last.run, seed,
                                      printable(*result.tally.violation, 400)));
    if (!result.file.empty()) {
      table.notes.push_back(fmt::format("again: kvsim fuzz replay {}", printable(result.file)));
    }
  }
  report.result["violated"] = failed;
  const auto count = std::ranges::count_if(
      results, [](const PropertyResult& result) { return !result.property->is_canary; });
  if (failed > 0) {
    report.headline = results.size() == 1
                          ? "The property is violated."
                          : fmt::format("{} of {} properties failed.", failed, results.size());
  } else {
    report.headline = fmt::format("{} {} in every run.", count,
                                  count == 1 ? "property holds" : "properties hold");
  }
  report.tables.push_back(std::move(table));
  return report;
}

Report property_replay_report(const std::string& path, const fuzz::PropertyCase& run,
                              const fuzz::PropertyTally& tally) {
  Report report;
  report.schema = schema;
  report.command = "fuzz replay";
  report.input = Json::object();
  report.input["file"] = path;
  report.input["seed"] = run.seed;
  if (run.plant != Plant::none) report.input["plant"] = std::string(to_string(run.plant));
  report.result = run_json(run, tally);
  report.headline = fmt::format("{}, run {} of seed {}: {}.", run.property, run.run, run.seed,
                                tally.violation ? "violated" : "holds");
  if (!tally.violation) return report;
  Table table;
  table.show_headings = false;
  table.columns = {{"reason", "", "", Align::left}};
  table.rows.push_back({printable(*tally.violation, 4000)});
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace kvsim
