// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/predict/cells.h"
#include "cli/run/run_report.h"
#include "cli/run/run_tables.h"

namespace kvsim {
namespace {

using prediction_tables::left_column;

/// What one arm does in the last pass before a token.
struct Explained {
  PlanStep pass;
  std::vector<ExplainedOperator> operators;
};

/// Step 0 is the prompt's; step 1 makes the second token.
Result<Explained> explain_step(const PreparedArm& arm, std::int64_t prompt, std::int64_t step) {
  const auto passes =
      step == 0 ? cache_plan(arm.arm, prompt, 0) : next_passes(arm.arm, prompt, step - 1);
  if (!passes) return passes.error();
  Explained result;
  result.pass = passes->back();
  auto operators = arm.engine->explain(result.pass, arm.launch_of(prompt));
  if (!operators) return operators.error();
  result.operators = std::move(*operators);
  return result;
}

/// What a setting names, without the line that it stands in.
std::string_view value_of(std::string_view setting) {
  return setting.substr(std::min(setting.find('='), setting.size()));
}

std::string mark_of(const ExplainedOperator& first, const ExplainedOperator& second) {
  if (value_of(first.setting) != value_of(second.setting)) return "kernel";
  if (first.detail != second.detail) return "choice";
  return first.shape != second.shape ? "shape" : "";
}

/// The columns of one side.
void add_side(Table& table, const std::string& key, const std::string& label) {
  table.columns.push_back(left_column(key + "_shape", label));
  table.columns.push_back(left_column(key + "_setting", "computed by"));
  table.columns.push_back(left_column(key + "_detail", "which chooses"));
}

void add_cells(std::vector<Cell>& row, const ExplainedOperator& entry) {
  row.emplace_back(entry.shape);
  row.emplace_back(entry.setting);
  row.emplace_back(entry.detail);
}

Table side_by_side(const std::string& title, const std::string& first_label,
                   const std::string& second_label, const Explained& first,
                   const Explained& second) {
  Table table;
  table.title = title;
  table.columns = {left_column("operation", "operation")};
  add_side(table, "first", first_label);
  add_side(table, "second", second_label);
  table.columns.push_back(left_column("differs", "differs"));
  const ExplainedOperator none;
  for (std::size_t i = 0; i < std::max(first.operators.size(), second.operators.size()); ++i) {
    const ExplainedOperator& a = i < first.operators.size() ? first.operators[i] : none;
    const ExplainedOperator& b = i < second.operators.size() ? second.operators[i] : none;
    std::vector<Cell> row{a.operation.empty() ? b.operation : a.operation};
    add_cells(row, a);
    add_cells(row, b);
    row.emplace_back(mark_of(a, b));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table alone(const std::string& title, const std::string& label, const Explained& arm) {
  Table table;
  table.title = title;
  table.columns = {left_column("operation", "operation")};
  add_side(table, "first", label);
  for (const ExplainedOperator& entry : arm.operators) {
    std::vector<Cell> row{entry.operation};
    add_cells(row, entry);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string pass_text(const PlanStep& pass) {
  return fmt::format("rows {} to {}, {} cached", pass.first_row, pass.first_row + pass.rows - 1,
                     pass.cached_rows);
}

}  // namespace

Result<Report> explain_report(const RunRequest& request) {
  const std::span<const PreparedArm> arms = request.run.arms();
  const auto prompt = std::ssize(request.run.prompts().front().ids);
  Report report;
  report.schema = "kvsim.run_explain/1";
  report.command = "run";
  report.input = run_input_json(request);
  report.result = Json::object();
  report.result["passes"] = Json::array();
  std::int64_t kernels = 0;
  for (const std::int64_t step : {0, 1}) {
    const Result<Explained> first = explain_step(arms.front(), prompt, step);
    if (!first) return first.error();
    const std::string what = step == 0 ? "The prompt's last pass" : "The next token's last pass";
    for (std::size_t other = arms.size() > 1 ? 1 : 0; other < arms.size(); ++other) {
      const Result<Explained> second = explain_step(arms[other], prompt, step);
      if (!second) return second.error();
      const std::string& label = arms.front().arm.label;
      const std::string& other_label = arms[other].arm.label;
      const Table table =
          other == 0
              ? alone(fmt::format("{}, {}: {}", what, label, pass_text(first->pass)), label, *first)
              : side_by_side(fmt::format("{}, {}: {}; {}: {}", what, label, pass_text(first->pass),
                                         other_label, pass_text(second->pass)),
                             label, other_label, *first, *second);
      Json entry = Json::object();
      entry["step"] = step;
      entry["first"] = label;
      entry["second"] = other == 0 ? Json() : Json(other_label);
      entry["operators"] = rows_as_json(table);
      for (const Json& row : entry["operators"]) {
        if (row.contains("differs") && row["differs"] == "kernel") ++kernels;
      }
      report.result["passes"].push_back(std::move(entry));
      report.tables.push_back(table);
    }
  }
  report.headline =
      arms.size() == 1 ? fmt::format("What computes {} on this model.", arms.front().arm.label)
      : kernels == 0
          ? std::string("The same kernels everywhere: what differs comes from their sizes.")
          : fmt::format("{} operators are computed by another kernel or format than in {}.",
                        kernels, arms.front().arm.label);
  report.result["meaning"] = report.headline;
  return report;
}

}  // namespace kvsim
