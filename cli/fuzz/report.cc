// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/report.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

using fuzz::CaseKind;
using fuzz::CaseShape;
using fuzz::FlipScore;
using fuzz::FlipScorer;

std::string number(double value) { return fmt::format("{:.6g}", value); }
std::string ratio(double value) { return fmt::format("{:.3g}", value); }
Cell cell(double value) { return {number(value), json_number(value)}; }

std::string format_text(const softfloat::Format& format) {
  return std::string(softfloat::format_name(format));
}

Json shape_json(const CaseShape& shape, const FlipScorer& scorer) {
  Json out = Json::object();
  out["kind"] = shape.kind == CaseKind::sum ? "sum" : "attention";
  out["storage"] = format_text(shape.storage);
  if (shape.kind == CaseKind::sum) {
    out["terms"] = shape.terms;
    out["accumulate"] = format_text(shape.accumulator);
    out["product"] = std::string(to_string(shape.product));
  } else {
    out["query_heads"] = shape.attention.query_heads;
    out["kv_heads"] = shape.attention.kv_heads;
    out["head_dim"] = shape.attention.head_dim;
    out["kv_len"] = shape.attention.kv_len;
  }
  out["on"] = scorer.path_name(fuzz::path_on);
  out["off"] = scorer.path_name(fuzz::path_off);
  return out;
}

/// What the two paths are called.
std::string_view path_label(const CaseShape& shape, std::size_t path) {
  if (shape.kind == CaseKind::sum) return path == fuzz::path_on ? "on" : "off";
  return path == fuzz::path_on ? "cache-on" : "cache-off";
}

/// "cache-on chooses token 0, cache-off token 1"
std::string choice_text(const CaseShape& shape, const std::array<int, 2>& tokens) {
  return fmt::format("{} chooses token {}, {} token {}", path_label(shape, fuzz::path_on),
                     tokens[fuzz::path_on], path_label(shape, fuzz::path_off),
                     tokens[fuzz::path_off]);
}

std::string shape_text(const CaseShape& shape) {
  if (shape.kind == CaseKind::sum) {
    return fmt::format("two dot products of {} terms, {} products in {}", shape.terms,
                       to_string(shape.product), format_text(shape.accumulator));
  }
  return fmt::format("{} query heads on {} K/V heads, head_dim {}, {} keys",
                     shape.attention.query_heads, shape.attention.kv_heads,
                     shape.attention.head_dim, shape.attention.kv_len);
}

Table settings_table(const CaseShape& shape, const FlipScorer& scorer) {
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  table.rows = {{"case", shape_text(shape)},
                {"storage", format_text(shape.storage)},
                {path_label(shape, fuzz::path_on), scorer.path_name(fuzz::path_on)},
                {path_label(shape, fuzz::path_off), scorer.path_name(fuzz::path_off)}};
  return table;
}

/// Both paths beside the exact result.
Table paths_table(const CaseShape& shape, const FlipScore& score) {
  Table table;
  table.columns = {{"path", "path", "", Align::left},
                   {"difference", "token 0 - token 1", "logits", Align::right},
                   {"error", "error", "logits", Align::right},
                   {"bound", "bound", "logits", Align::right},
                   {"token", "token", "", Align::right}};
  table.rows.push_back({"exact", cell(score.exact), cell(0), cell(score.reference_error),
                        Cell(score.exact >= 0 ? "0" : "1", Json(score.exact >= 0 ? 0 : 1))});
  for (const std::size_t path : {fuzz::path_on, fuzz::path_off}) {
    const fuzz::PathScore& one = score.paths[path];
    table.rows.push_back({path_label(shape, path), cell(one.difference),
                          cell(one.difference - score.exact), cell(one.bound),
                          Cell(fmt::to_string(one.token()), Json(one.token()))});
  }
  table.notes = {
      "error: from the exact difference, which is known within its bound; bound: what rounding can "
      "do to this input on that path, rigorously"};
  return table;
}

void add_score(Json& result, const FlipScore& score, const fuzz::Confirmation& confirmation) {
  result["margin"] = json_number(confirmation.margin());
  result["bound"] = json_number(score.bound());
  result["bound_ratio"] = json_number(confirmation.margin() / score.bound());
}

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
