// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "cli/fuzz/blame.h"
#include "cli/fuzz/case_report.h"
#include "cli/fuzz/shrink.h"
#include "cli/printable.h"
#include "fuzz/flip/objective.h"

namespace kvsim {
namespace {

using fuzz::FlipScore;
using fuzz::FlipScorer;

std::string random_text(const fuzz::Baseline& baseline, double found) {
  if (baseline.finds == 0) return "plain random search finds none in as many cases";
  return fmt::format("{} × the best of {} that plain random search finds in as many cases",
                     ratio(found / baseline.best_value), baseline.finds);
}

}  // namespace

Report flip_report(const FlipRequest& request, const FlipScorer& scorer,
                   const fuzz::FlipSearch& search,
                   const std::optional<fuzz::FlipSearch::Confirmed>& found,
                   const FlipFollowUp& after) {
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz flip";
  report.input = shape_json(request.shape, scorer);
  report.input["range"] = printable(request.ranges.source, 4096);
  report.input["subnormals"] = request.ranges.subnormals;
  report.input["seed"] = request.limits.seed;
  report.input["islands"] = request.limits.islands;
  report.input["runs"] = search.runs();
  Table settings = settings_table(request.shape, scorer);
  settings.rows.push_back(
      {"numbers", fmt::format("{}, within the magnitudes of {}",
                              request.ranges.subnormals ? "normal and subnormal" : "normal",
                              printable(request.ranges.source, 4096))});
  settings.rows.push_back({"search", fmt::format("{} runs on {} islands, seed {}", search.runs(),
                                                 request.limits.islands, request.limits.seed)});
  report.tables.push_back(std::move(settings));

  const fuzz::Baseline& baseline = search.baseline();
  const fuzz::Objective& wanted = fuzz::objective(request.shape.target);
  Json result = Json::object();
  result["found"] = found.has_value();
  result["unit"] = std::string(wanted.unit);
  if (!found) {
    report.headline = fmt::format(fmt::runtime(wanted.none), fmt::arg("runs", search.runs()));
    for (const char* const key :
         {"value", "margin", "apart", "bound", "bound_ratio", "random_ratio"}) {
      result[key] = nullptr;
    }
    result["random_finds"] = baseline.finds;
    result["paths"] = nullptr;
    result["case"] = nullptr;
    result["shrunk"] = nullptr;
    result["blame"] = nullptr;
    report.result = std::move(result);
    return report;
  }
  const FlipScore& score = found->find.scored.score;
  report.headline = fmt::format(
      "{}; {}.", claim_text(wanted.found, request.shape, score, found->confirmation, found->claim),
      random_text(baseline, found->claim.value));
  Table paths = paths_table(scorer.shape(), score);
  result["value"] = json_number(found->claim.value);
  add_score(result, score, found->confirmation);
  result["random_ratio"] =
      baseline.finds > 0 ? json_number(found->claim.value / baseline.best_value) : Json();
  result["random_finds"] = baseline.finds;
  result["paths"] = rows_as_json(paths);
  result["case"] = fuzz::to_text(found->find.scored.flip_case);
  report.tables.push_back(std::move(paths));
  result["shrunk"] = nullptr;
  if (after.shrunk) {
    report.tables.push_back(shrink_table(*after.shrunk));
    result["shrunk"] = shrink_json(*after.shrunk);
  }
  result["blame"] = nullptr;
  if (after.blame) {
    const fuzz::CaseShape& shape = request.shape;
    const bool known = after.blame->has_value();
    if (known) result["blame"] = blame_json(shape, **after.blame);
    report.tables.back().notes.push_back(
        known ? blame_text(shape, **after.blame) + " (kvsim fuzz blame FILE)"
              : "what decides is not told: " + after.blame->error().message);
  }
  if (!after.files.empty()) {
    report.tables.back().notes.push_back(fmt::format("{}: {} (kvsim fuzz replay FILE)",
                                                     after.files.size() > 1 ? "cases" : "the case",
                                                     fmt::join(after.files, ", ")));
  }
  report.result = std::move(result);
  return report;
}

Report replay_report(const std::string& file, const FlipScorer& scorer, const FlipScore& score,
                     const fuzz::Confirmation& confirmation, const fuzz::Claim& claim) {
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz replay";
  report.input = shape_json(scorer.shape(), scorer);
  report.input["file"] = file;
  const fuzz::Objective& wanted = fuzz::objective(scorer.shape().target);
  report.headline = claim_text(claim.holds() ? wanted.found : wanted.absent, scorer.shape(), score,
                               confirmation, claim);
  if (claim.holds()) report.headline += ".";
  report.tables.push_back(settings_table(scorer.shape(), scorer));
  Table paths = paths_table(scorer.shape(), score);
  Json result = Json::object();
  result["found"] = claim.holds();
  result["unit"] = std::string(wanted.unit);
  result["value"] = claim.holds() ? json_number(claim.value) : Json();
  add_score(result, score, confirmation);
  result["paths"] = rows_as_json(paths);
  report.tables.push_back(std::move(paths));
  report.result = std::move(result);
  return report;
}

}  // namespace kvsim
