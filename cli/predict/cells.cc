// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/cells.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace kvsim::prediction_tables {

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent == 0) return "0 %";
  if (percent < 1e-3) return "< 0.001 %";
  if (percent >= 10) return fmt::format("{:.1f} %", percent);
  return fmt::format("{:.2g} %", percent);
}

std::string figure_text(double value) {
  if (value == 0) return "0";
  return std::isfinite(value) ? fmt::format("{:.2e}", value) : std::string("overflow");
}

std::string short_text(double value) { return fmt::format("{:.2g}", value); }

std::string counted(std::int64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

Cell count(std::int64_t value) { return {std::to_string(value), Json(value)}; }
Cell figure(double value) { return {figure_text(value), json_number(value)}; }
Cell factor(double value) { return {fmt::format("{:.4f}", value), json_number(value)}; }
Cell percentage(double share) { return {percent_text(share), json_number(share)}; }
Cell nothing() { return {"-", Json()}; }

Column left_column(std::string key, std::string heading) {
  return {std::move(key), std::move(heading), "", Align::left};
}
Column right_column(std::string key, std::string heading, std::string unit) {
  return {std::move(key), std::move(heading), std::move(unit), Align::right};
}

void add_difference_columns(Table& table) {
  for (Column& column : std::vector<Column>{
           right_column("differing", "differing"), right_column("elements", "of"),
           right_column("share", "share"), right_column("relative_l2", "rel L2"),
           right_column("max_absolute", "max abs"), right_column("max_ulp", "max", "ulp")}) {
    table.columns.push_back(std::move(column));
  }
}

void add_difference_cells(std::vector<Cell>& cells, const VectorDifference& difference) {
  cells.push_back(count(difference.differing));
  cells.push_back(count(difference.elements));
  cells.push_back(percentage(difference.share()));
  cells.push_back(figure(difference.relative_l2));
  cells.push_back(figure(difference.max_absolute));
  cells.push_back(count(difference.max_ulp));
}

Json difference_json(const VectorDifference& difference) {
  Json out = Json::object();
  out["elements"] = difference.elements;
  out["differing"] = difference.differing;
  out["not_finite"] = difference.not_finite;
  out["l2"] = json_number(difference.l2);
  out["relative_l2"] = json_number(difference.relative_l2);
  out["cosine"] = json_number(difference.cosine);
  out["max_absolute"] = json_number(difference.max_absolute);
  out["max_ulp"] = difference.max_ulp;
  out["ulp_histogram"] = Json::array();
  for (const UlpBin& bin : difference.histogram) {
    Json entry = Json::object();
    entry["from"] = bin.from;
    entry["to"] = bin.to;
    entry["count"] = bin.count;
    out["ulp_histogram"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace kvsim::prediction_tables
