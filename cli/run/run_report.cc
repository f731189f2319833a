// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/run_report.h"

#include <utility>

#include "cli/run/run_tables.h"
#include "run/launch_settings.h"

namespace kvsim {
namespace {

namespace tables = run_tables;

constexpr std::size_t rows_for_people = 20;
constexpr std::size_t flips_for_people = 3;

Json launch_json(const PreparedArm& arm) {
  Json out = Json::object();
  out["neighbours"] = Json(arm.launch.neighbours);
  out["batch"] = arm.batch ? Json(*arm.batch) : Json();
  out["padding"] = std::string(to_string(arm.launch.padding));
  out["verify_width"] = arm.launch.verify_width;
  return out;
}

Json pair_json(const RunRequest& request, const RunResults& results, const tables::PairView& pair) {
  Json out = Json::object();
  out["first"] = tables::label(request, 0);
  out["second"] = tables::label(request, pair.arm);
  const std::string_view difference = tables::difference_name(request, pair.arm);
  out["difference"] = difference.empty() ? Json() : Json(difference);
  out["total"] = rows_as_json(tables::totals(request, {pair}))[0];
  out["prompts"] = Json::array();
  const Json rows = rows_as_json(tables::differences(request, results.prompts(), pair));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json row = rows[i];
    const std::optional<ChosenOtherwise>& flip = pair.prompts[i].flip;
    row["tokens_at_flip"] = flip ? Json::array({flip->first, flip->second}) : Json();
    out["prompts"].push_back(std::move(row));
  }
  return out;
}

}  // namespace

Json run_input_json(const RunRequest& request) {
  const RunOptions& options = request.run.options();
  Json input = Json::object();
  input["model"] = request.model;
  input["model_sha256"] = request.engine->model_sha256();
  input["engine"] = request.engine->name();
  input["storage"] = request.engine->storage();
  input["prompts"] = request.prompt_source;
  input["max_new_tokens"] = options.max_new_tokens;
  input["sampling"] = to_text(options.sampling);
  input["seed"] = options.sampling.seed;
  input["teacher_forced"] = options.teacher_forced;
  input["stops"] = options.stops;
  input["arms"] = Json::array();
  for (const PreparedArm& arm : request.run.arms()) {
    Json entry = Json::object();
    entry["label"] = arm.arm.label;
    entry["arm"] = to_text(arm.arm);
    entry["dispatch"] = arm.engine->dispatch();
    entry["launch"] = launch_json(arm);
    input["arms"].push_back(std::move(entry));
  }
  return input;
}

Report run_report(const RunRequest& request, const RunResults& results, const RunSummary& summary) {
  const std::vector<tables::PairView> pairs = tables::pair_views(results.prompts());
  Report report;
  report.schema = "kvsim.run/1";
  report.command = "run";
  report.headline = tables::meaning(request, pairs);
  report.tables = {tables::settings(request, summary), tables::arms(request, summary)};
  if (!pairs.empty()) report.tables.push_back(tables::totals(request, pairs));
  for (const tables::PairView& pair : pairs) {
    report.tables.push_back(
        tables::shortened(tables::differences(request, results.prompts(), pair), rows_for_people));
    std::size_t shown = 0;
    for (std::size_t i = 0; i < pair.prompts.size() && shown < flips_for_people; ++i) {
      const std::optional<ChosenOtherwise>& flip = pair.prompts[i].flip;
      if (!flip) continue;
      report.tables.push_back(tables::around_flip(request, results.prompts()[i], pair, *flip));
      ++shown;
    }
  }
  const Table texts = tables::texts(request, results.prompts());
  report.tables.push_back(tables::shortened(texts, rows_for_people));

  report.input = run_input_json(request);
  Json& result = report.result;
  result = Json::object();
  result["meaning"] = report.headline;
  result["arms"] = Json::array();
  for (std::size_t arm = 0; arm < summary.exp_bounded.size(); ++arm) {
    Json entry = Json::object();
    entry["label"] = tables::label(request, arm);
    entry["exp"] = summary.exp_bounded[arm] ? "bounded" : "exact";
    result["arms"].push_back(std::move(entry));
  }
  result["pairs"] = Json::array();
  for (const tables::PairView& pair : pairs) {
    result["pairs"].push_back(pair_json(request, results, pair));
  }
  result["texts"] = rows_as_json(texts);
  return report;
}

}  // namespace kvsim
