// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/shrink.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/fuzz/case_file.h"
#include "cli/fuzz/case_report.h"
#include "cli/fuzz/model_flip.h"
#include "cli/fuzz/search_run.h"
#include "cli/progress.h"
#include "cli/replay/settings.h"
#include "cli/sink.h"
#include "fuzz/flip/model_case.h"

namespace kvsim {
namespace {

struct SizeRow {
  std::string_view name;
  std::string_view key;
  std::int64_t fuzz::CaseSize::* size;
};

constexpr SizeRow size_rows[] = {
    {"keys", "keys", &fuzz::CaseSize::keys},
    {"elements of a head", "head_dim", &fuzz::CaseSize::head_dim},
    {"query heads", "query_heads", &fuzz::CaseSize::query_heads},
    {"splits of both paths", "splits", &fuzz::CaseSize::splits},
    {"numbers", "numbers", &fuzz::CaseSize::numbers},
    {"numbers that are not 0", "nonzero", &fuzz::CaseSize::nonzero},
    {"significant bits", "significant_bits", &fuzz::CaseSize::significant_bits},
};

Json size_json(const fuzz::CaseSize& size) {
  Json out = Json::object();
  for (const SizeRow& row : size_rows) out[std::string(row.key)] = size.*row.size;
  return out;
}

/// "", or what is left to do.
std::string_view end_text(const fuzz::ShrunkCase& shrunk) {
  return shrunk.complete ? "" : "; the limit of cases was reached, shrinking again goes on";
}

}  // namespace

Table shrink_table(const fuzz::ShrunkCase& shrunk) {
  const bool sum = shrunk.flip_case.shape.kind == fuzz::CaseKind::sum;
  Table table;
  table.columns = {{"size", "size", "", Align::left},
                   {"before", "before", "", Align::right},
                   {"after", "after", "", Align::right}};
  for (const SizeRow& row : size_rows) {
    const std::int64_t before = shrunk.before.*row.size;
    const std::int64_t after = shrunk.after.*row.size;
    if (before == 0 && after == 0) continue;
    table.rows.push_back({sum && row.key == "keys" ? "terms" : row.name,
                          Cell(fmt::to_string(before), before),
                          Cell(fmt::to_string(after), after)});
  }
  const std::string unit(fuzz::objective(shrunk.flip_case.shape.target).unit);
  table.rows.push_back(
      {"claim, " + unit, Cell(ratio(shrunk.value_before)), Cell(ratio(shrunk.claim.value))});
  table.notes = {fmt::format("{} smaller cases were tried; the claim stays at least {} {}{}",
                             shrunk.scores, ratio(shrunk.floor), unit, end_text(shrunk))};
  return table;
}

Json shrink_json(const fuzz::ShrunkCase& shrunk) {
  Json out = Json::object();
  out["before"] = size_json(shrunk.before);
  out["after"] = size_json(shrunk.after);
  out["value"] = json_number(shrunk.claim.value);
  add_score(out, shrunk.score, shrunk.confirmation);
  out["floor"] = json_number(shrunk.floor);
  out["tried"] = shrunk.scores;
  out["complete"] = shrunk.complete;
  out["case"] = fuzz::to_text(shrunk.flip_case);
  return out;
}

Result<Answer> run_shrink(const ParsedOptions& options) {
  const auto text = case_text(options);
  if (!text) return text.error();
  if (fuzz::is_model_case(text->text)) return shrink_model(options, text->path, text->text);
  const auto file = case_file(options);
  if (!file) return file.error();
  const auto floor = float_option(options, "--floor", 0x1p-40F, 1.0F);
  if (!floor) return floor.error();
  Progress progress("fuzz shrink", options);
  const auto shrunk = fuzz::shrink(file->flip_case, floor->value_or(0.0F), {},
                                   [&](double share) { progress.show(share); });
  if (!shrunk) return in_file(file->path, shrunk.error());
  const auto scorer = fuzz::FlipScorer::make(shrunk->flip_case.shape);
  if (!scorer) return scorer.error();
  const auto out = options.value("--out");
  if (out) {
    const auto written = write_output_file(*out, fuzz::to_text(shrunk->flip_case));
    if (!written) return written.error();
  }
  Answer answer;
  Report& report = answer.report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz shrink";
  report.input = shape_json(file->flip_case.shape, file->scorer);
  report.input["file"] = file->path;
  const bool same = shrunk->flip_case.tensors == file->flip_case.tensors;
  report.headline =
      same ? "Nothing smaller: every step loses what the case claims, or too much of it."
           : fmt::format("Smaller. {}.",
                         claim_text(fuzz::objective(shrunk->flip_case.shape.target).found,
                                    shrunk->flip_case.shape, shrunk->score, shrunk->confirmation,
                                    shrunk->claim));
  report.tables = {settings_table(shrunk->flip_case.shape, *scorer), shrink_table(*shrunk),
                   paths_table(shrunk->flip_case.shape, shrunk->score)};
  report.tables.back().notes.push_back(
      out ? fmt::format("the case: {} (kvsim fuzz replay FILE)", *out)
          : std::string("no file was written: --out FILE writes the case"));
  report.result["shrunk"] = shrink_json(*shrunk);
  report.result["paths"] = rows_as_json(report.tables.back());
  return answer;
}

}  // namespace kvsim
