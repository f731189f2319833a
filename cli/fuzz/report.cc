// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/report.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "cli/fuzz/case_report.h"

namespace kvsim {
namespace {

using fuzz::FlipScore;
using fuzz::FlipScorer;

std::string random_text(const fuzz::Baseline& baseline, double found) {
  if (baseline.flips == 0) {
    return "plain random search finds no flip in as many cases";
  }
  return fmt::format("{} × the best of {} flips that plain random search finds in as many cases",
                     ratio(found / baseline.best_ratio), baseline.flips);
}

}  // namespace

Report flip_report(const FlipRequest& request, const FlipScorer& scorer,
                   const fuzz::FlipSearch& search,
                   const std::optional<fuzz::FlipSearch::Confirmed>& found,
                   const std::string& case_file) {
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz flip";
  report.input = shape_json(request.shape, scorer);
  report.input["seed"] = request.search.seed;
  report.input["islands"] = request.search.islands;
  report.input["runs"] = search.runs();
  Table settings = settings_table(request.shape, scorer);
  settings.rows.push_back(
      {"numbers", "normal, within the magnitudes of " + std::string(fuzz::default_range_source)});
  settings.rows.push_back({"search", fmt::format("{} runs on {} islands, seed {}", search.runs(),
                                                 request.search.islands, request.search.seed)});
  report.tables.push_back(std::move(settings));

  const fuzz::Baseline& baseline = search.baseline();
  Json result = Json::object();
  result["found"] = found.has_value();
  if (!found) {
    report.headline = fmt::format(
        "No flip in {} runs: both paths chose the same token in every case that was tried.",
        search.runs());
    for (const char* const key : {"margin", "bound", "bound_ratio", "random_ratio"}) {
      result[key] = nullptr;
    }
    result["random_flips"] = baseline.flips;
    result["paths"] = nullptr;
    result["case"] = nullptr;
    report.result = std::move(result);
    return report;
  }
  const FlipScore& score = found->find.scored.score;
  const double bound_ratio = found->confirmation.margin() / score.bound();
  report.headline = fmt::format(
      "A flip: {}, although the exact logits are {} apart (confirmed with 256 bits): {} of what "
      "the "
      "bounds on rounding allow; {}.",
      choice_text(request.shape, found->confirmation.tokens), number(found->confirmation.margin()),
      ratio(bound_ratio), random_text(baseline, bound_ratio));
  Table paths = paths_table(scorer.shape(), score);
  add_score(result, score, found->confirmation);
  result["random_ratio"] =
      baseline.flips > 0 ? json_number(bound_ratio / baseline.best_ratio) : Json();
  result["random_flips"] = baseline.flips;
  result["paths"] = rows_as_json(paths);
  result["case"] = fuzz::to_text(found->find.scored.flip_case);
  report.tables.push_back(std::move(paths));
  if (!case_file.empty()) {
    report.tables.back().notes.push_back(
        fmt::format("the case: {} (kvsim fuzz replay FILE)", case_file));
  }
  report.result = std::move(result);
  return report;
}

Report replay_report(const std::string& file, const FlipScorer& scorer, const FlipScore& score,
                     const fuzz::Confirmation& confirmation) {
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz replay";
  report.input = shape_json(scorer.shape(), scorer);
  report.input["file"] = file;
  const bool flips = confirmation.flips();
  report.headline =
      flips ? fmt::format(
                  "The flip is there: {}, and the exact logits are {} apart, {} of what the "
                  "bounds on rounding allow.",
                  choice_text(scorer.shape(), confirmation.tokens), number(confirmation.margin()),
                  ratio(confirmation.margin() / score.bound()))
            : fmt::format("No flip: both paths choose token {}, and the exact logits are {} apart.",
                          confirmation.tokens[fuzz::path_on], number(confirmation.margin()));
  if (!flips && confirmation.tokens[0] != confirmation.tokens[1]) {
    report.headline = "No flip: the exact logits are equal, so neither token is wrong.";
  }
  report.tables.push_back(settings_table(scorer.shape(), scorer));
  Table paths = paths_table(scorer.shape(), score);
  Json result = Json::object();
  result["found"] = flips;
  add_score(result, score, confirmation);
  result["paths"] = rows_as_json(paths);
  report.tables.push_back(std::move(paths));
  report.result = std::move(result);
  return report;
}

}  // namespace kvsim
