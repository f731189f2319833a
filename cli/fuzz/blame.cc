// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cli/fuzz/case_file.h"
#include "cli/fuzz/case_report.h"
#include "cli/fuzz/search_run.h"
#include "cli/sink.h"
#include "fuzz/flip/blame_picture.h"

namespace kvsim {
namespace {

using fuzz::Blame;
using fuzz::Rounding;

constexpr std::size_t most_rows = 12;

/// Those with an error: the decisive ones first, then by the size of their effects.
std::vector<const Rounding*> ranked(const Blame& blame) {
  std::vector<const Rounding*> result;
  result.reserve(blame.roundings.size());
  for (const Rounding& rounding : blame.roundings) {
    if (rounding.error_ulp != 0) result.push_back(&rounding);
  }
  const auto rank = [](const Rounding* rounding) { return rounding->decisive ? 0 : 1; };
  std::ranges::sort(result, [&](const Rounding* a, const Rounding* b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    const double left = std::abs(a->effect);
    const double right = std::abs(b->effect);
    return left != right ? left > right : a < b;
  });
  return result;
}

std::size_t decisive_count(const Blame& blame) {
  return static_cast<std::size_t>(
      std::ranges::count_if(blame.roundings, [](const Rounding& one) { return one.decisive; }));
}

/// "no other would do alone" and the like.
std::string alone_text(const Blame& blame) {
  if (blame.alone == 0) return "none would do alone";
  if (blame.alone == 1 && decisive_count(blame) == 1) return "no other would do alone";
  return fmt::format("{} would each do alone", blame.alone);
}

Table blame_table(const Blame& blame) {
  const std::vector<const Rounding*> rows = ranked(blame);
  const std::size_t shown = std::max(most_rows, decisive_count(blame));
  Table table;
  table.columns = {{"decides", "decides", "", Align::left},
                   {"place", "place", "", Align::left},
                   {"step", "rounding", "", Align::left},
                   {"error_ulp", "error", "ulp", Align::right},
                   {"effect", "effect", "logits", Align::right},
                   {"share", "of the path's error", "%", Align::right}};
  for (const Rounding* const rounding : rows) {
    if (table.rows.size() == shown) break;
    const double share = rounding->effect / blame.error;
    table.rows.push_back({Cell(rounding->decisive ? "yes" : "", Json(rounding->decisive)),
                          rounding->place, rounding->step,
                          Cell(ratio(rounding->error_ulp), json_number(rounding->error_ulp)),
                          Cell(number(rounding->effect), json_number(rounding->effect)),
                          Cell(fmt::format("{:.1f}", 100 * share), json_number(share))});
  }
  table.notes = {
      "error: what the rounding gives less the exact result of what it was given, of a step the "
      "largest one; effect: on the difference of the logits, as the error is taken away and all "
      "others stay"};
  if (rows.size() > shown) {
    table.notes.push_back(fmt::format("{} more have smaller effects", rows.size() - shown));
  }
  return table;
}

}  // namespace

std::string blame_text(const fuzz::CaseShape& shape, const Blame& blame) {
  const std::size_t count = decisive_count(blame);
  std::string text = fmt::format("Path {}: {} of {} roundings {}", path_label(shape, blame.path),
                                 count, blame.erring, count == 1 ? "decides" : "decide together");
  std::size_t named = 0;
  for (const Rounding* const rounding : ranked(blame)) {
    if (!rounding->decisive) break;
    if (named == 3) return text + fmt::format("; and {} more", count - named);
    text += fmt::format("{} {}: {}", named++ == 0 ? ":" : ";", rounding->place, rounding->step);
  }
  return text;
}

Json blame_json(const fuzz::CaseShape& shape, const Blame& blame) {
  Json out = Json::object();
  out["path"] = std::string(path_label(shape, blame.path));
  out["error"] = json_number(blame.error);
  out["erring"] = blame.erring;
  out["alone"] = blame.alone;
  out["decisive"] = decisive_count(blame);
  out["roundings"] = rows_as_json(blame_table(blame));
  return out;
}

Result<Answer> run_blame(const ParsedOptions& options) {
  const auto file = case_file(options);
  if (!file) return file.error();
  const fuzz::CaseShape& shape = file->flip_case.shape;
  const auto blamed = fuzz::blame(file->scorer, file->flip_case);
  if (!blamed) return in_file(file->path, blamed.error());
  Answer answer;
  Report& report = answer.report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz blame";
  report.input = shape_json(shape, file->scorer);
  report.input["file"] = file->path;
  const bool single = decisive_count(*blamed) == 1;
  report.headline =
      fmt::format("{}. With {} exact the flip is gone; {}.", blame_text(shape, *blamed),
                  single ? "it" : "them", alone_text(*blamed));
  report.tables = {settings_table(shape, file->scorer), blame_table(*blamed)};
  if (const auto svg = options.value("--svg")) {
    const auto written = write_output_file(*svg, fuzz::blame_picture(file->flip_case, *blamed));
    if (!written) return written.error();
    report.tables.back().notes.push_back("the picture: " + *svg);
  }
  report.result["blame"] = blame_json(shape, *blamed);
  return answer;
}

}  // namespace kvsim
