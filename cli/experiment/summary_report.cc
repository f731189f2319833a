// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/experiment/summary_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/printable.h"
#include "experiments/controls/controls.h"
#include "experiments/findings/claims.h"
#include "experiments/study_file.h"

namespace kvsim {
namespace {

Table table_of(experiments::SummaryTable summary) {
  Table table;
  table.title = std::move(summary.title);
  table.notes = std::move(summary.notes);
  table.columns.reserve(summary.columns.size());
  for (experiments::SummaryColumn& column : summary.columns) {
    table.columns.push_back({std::move(column.key), std::move(column.heading),
                             std::move(column.unit), column.is_text ? Align::left : Align::right});
  }
  table.rows.reserve(summary.rows.size());
  for (std::vector<experiments::SummaryCell>& cells : summary.rows) {
    std::vector<Cell> row;
    row.reserve(cells.size());
    for (experiments::SummaryCell& each : cells) {
      row.emplace_back(printable(each.text, 200), std::move(each.value));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// What was run, for people.
Table head_table(const experiments::StudyRow& row, const Json& head, const std::string& path) {
  Table table;
  table.title = fmt::format("{}: {}", row.name, row.question);
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  const auto add = [&](const char* name, const std::string& value) {
    table.rows.push_back({Cell(name), Cell(printable(value, 200))});
  };
  const auto text = [&](const char* field) { return head.at(field).get<std::string>(); };
  add("model", fmt::format("{}, {}", text("model"), text("storage")));
  add("engine", text("engine"));
  add("on", text("on"));
  add("off", text("off"));
  add("prompts", fmt::format("{}, up to {} new tokens", head.at("prompts").at("numbers").size(),
                             head.at("new_tokens").dump()));
  add("records", path);
  return table;
}

}  // namespace

SummaryReport::SummaryReport(std::string command) {
  report_.schema = "kvsim.experiment/1";
  report_.command = std::move(command);
  report_.input = Json::object();
  report_.result = Json::object();
}

Result<bool> SummaryReport::add(const std::string& path) {
  auto records = experiments::read_study(path);
  if (!records) return records.error();
  const auto found = experiments::study_named(records->head.at("study").get<std::string>());
  if (!found) {
    return Error{ErrorKind::file,
                 fmt::format("{}: line 1: {}", printable(path, 4096), found.error().message)};
  }
  const experiments::StudyRow& row = **found;
  if (std::ranges::find(parts_, &row, &Part::row) != parts_.end()) {
    return Error{ErrorKind::usage, fmt::format("{}: a second file of {}; one of each study is "
                                               "accepted",
                                               printable(path, 4096), row.name)};
  }
  auto summary = experiments::summarize(row, *records);
  if (!summary) return summary.error();
  Part part{&row, std::move(records->head), std::move(*summary), path};
  try {
    static_cast<void>(head_table(row, part.head, path));
  } catch (const Json::exception& thrown) {
    return Error{ErrorKind::file, fmt::format("{}: line 1: {}", printable(path, 4096),
                                              printable(thrown.what(), 200))};
  }
  const bool is_first = &row == &experiments::controls_row();
  parts_.insert(is_first ? parts_.begin() : parts_.end(), std::move(part));
  return true;
}

std::string SummaryReport::failed() const {
  std::string text;
  for (const Part& part : parts_) {
    if (part.summary.failed.empty()) continue;
    text += (text.empty() ? "" : ", ") + part.summary.failed;
  }
  return text;
}

void SummaryReport::put(Part part) {
  const std::string failure = failed();
  if (!report_.headline.empty()) report_.headline += " ";
  const bool rests_on_failed = !failure.empty() && part.summary.failed.empty();
  report_.headline += rests_on_failed ? fmt::format("[{}] {}", failure, part.summary.headline)
                                      : part.summary.headline;
  report_.tables.push_back(head_table(*part.row, part.head, part.path));
  for (experiments::SummaryTable& table : part.summary.tables) {
    report_.tables.push_back(table_of(std::move(table)));
  }
  const std::string name(part.row->name);
  report_.input[name] = std::move(part.head);
  report_.result[name] = std::move(part.summary.result);
}

Report SummaryReport::take() {
  for (const Part& part : parts_) put(part);
  experiments::JudgedClaims claims =
      experiments::judge_claims([&](std::string_view study) -> const Json* {
        const auto found = report_.result.find(std::string(study));
        return found == report_.result.end() ? nullptr : &*found;
      });
  if (!claims.result.empty()) {
    report_.tables.push_back(table_of(std::move(claims.table)));
    report_.result["claims"] = std::move(claims.result);
  }
  return std::move(report_);
}

}  // namespace kvsim
