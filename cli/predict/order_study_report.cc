// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/order_study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/printable.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

// A figure in JSON: the number, and its binary64 code so that equality needs no parsing.
Json figure_json(double value) {
  Json out = Json::object();
  // Which NaN a processor makes is its own affair: the output knows one.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  out["value"] = json_number(value);
  out["bits"] = softfloat::to_bits_text(softfloat::binary64, softfloat::from_double(value));
  return out;
}

std::string figure_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return "inf";
  return fmt::format("{:.2e}", value);
}

Cell figure(double value) { return {figure_text(value), figure_json(value)}; }

Cell ulp_figure(double value) {
  return {std::isfinite(value) ? fmt::format("{:.4g}", value) : "inf", figure_json(value)};
}

// An infinite bound, or none at all, says that a number overflows or could.
Cell bound(double value) {
  return {std::isfinite(value) ? figure_text(value) : "overflow", figure_json(value)};
}

// Figures leave out what is infinite or NaN. Where that is every element there is no error to tell.
bool all_overflow(const ErrorSummary& error) {
  return error.elements > 0 && error.not_finite == error.elements;
}

Cell overflow_cell() { return {"overflow", figure_json(std::numeric_limits<double>::infinity())}; }

Cell count(std::int64_t value) { return {std::to_string(value), Json(value)}; }

Cell no_bound() { return {"-", Json()}; }

std::vector<Column> error_columns() {
  return {
      {"format", "format", "", Align::left},
      {"elements", "elements", "", Align::right},
      {"not_finite", "not finite", "", Align::right},
      {"mean_relative_error", "mean rel error", "", Align::right},
      {"relative_l2", "rel L2", "", Align::right},
      {"max_ulp", "max", "ulp", Align::right},
      {"max_absolute", "max abs", "", Align::right},
      {"running_bound_l2", "running bound", "", Align::right},
      {"a_priori_bound_l2", "a-priori bound", "", Align::right},
      {"max_of_running_bound", "error/bound", "", Align::right},
  };
}

void add_error_cells(std::vector<Cell>& cells, const softfloat::Format& format,
                     const ErrorSummary& error, bool has_a_priori_bound) {
  cells.emplace_back(softfloat::format_name(format));
  cells.push_back(count(error.elements));
  cells.push_back(count(error.not_finite));
  if (all_overflow(error)) {
    cells.insert(cells.end(), 4, overflow_cell());
  } else {
    cells.push_back(figure(error.mean_relative_error));
    cells.push_back(figure(error.relative_l2));
    cells.push_back(ulp_figure(error.max_ulp));
    cells.push_back(figure(error.max_absolute));
  }
  cells.push_back(bound(error.running_bound_l2));
  cells.push_back(has_a_priori_bound ? bound(error.a_priori_bound_l2) : no_bound());
  cells.push_back(figure(error.max_of_running_bound));
}

Table stage_table(const OrderStudy& prediction) {
  Table table;
  table.title = "Error of each stage against its exact result:";
  table.columns = {{"stage", "stage", "", Align::left}, {"order", "order", "", Align::left}};
  for (Column& column : error_columns()) table.columns.push_back(std::move(column));
  for (const StageReport& stage : prediction.stages) {
    std::vector<Cell> cells{Cell(to_string(stage.stage)), Cell(stage.variant)};
    add_error_cells(cells, stage.format, stage.error, stage.stage != Stage::attention);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table control_table(const OrderStudy& prediction) {
  Table table;
  table.title = "Controls (attention as a whole):";
  table.columns = {{"control", "control", "", Align::left}};
  for (Column& column : error_columns()) table.columns.push_back(std::move(column));
  table.columns.push_back({"meaning", "meaning", "", Align::left});
  for (const ControlReport& control : prediction.controls) {
    std::vector<Cell> cells{Cell(control.name)};
    add_error_cells(cells, control.format, control.error, false);
    cells.emplace_back(control.meaning);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Outputs: one row and one column for each order.
Table difference_table(const OrderStudy& prediction) {
  const auto& variants = prediction.options.variants;
  const auto attention =
      std::find_if(prediction.differences.begin(), prediction.differences.end(),
                   [](const DifferenceCount& each) { return each.stage == Stage::attention; });
  Table table;
  if (attention == prediction.differences.end()) return table;
  table.title = fmt::format("Output elements, of {}, that differ in their bits between two orders:",
                            attention->elements);
  table.columns = {{"order", "order", "", Align::left}};
  for (const OrderedVariant& variant : variants) {
    table.columns.push_back({variant.name, variant.name, "", Align::right});
  }
  for (std::size_t a = 0; a < variants.size(); ++a) {
    std::vector<Cell> cells{Cell(variants[a].name)};
    for (std::size_t b = 0; b < variants.size(); ++b) {
      cells.push_back(a == b ? Cell("-") : count(attention->differing[a][b]));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The stages before: the pair of orders that differs most.
Table stage_difference_table(const OrderStudy& prediction) {
  const auto& variants = prediction.options.variants;
  Table table;
  table.title = "The same for each stage alone, the two orders that differ most:";
  table.columns = {{"stage", "stage", "", Align::left},
                   {"differing", "differing", "elements", Align::right},
                   {"elements", "of", "", Align::right},
                   {"a", "order", "", Align::left},
                   {"b", "other order", "", Align::left}};
  for (const DifferenceCount& stage : prediction.differences) {
    if (stage.stage == Stage::attention) continue;
    std::size_t most_a = 0;
    std::size_t most_b = 1;
    for (std::size_t a = 0; a < variants.size(); ++a) {
      for (std::size_t b = a + 1; b < variants.size(); ++b) {
        if (stage.differing[a][b] <= stage.differing[most_a][most_b]) continue;
        most_a = a;
        most_b = b;
      }
    }
    const std::int64_t most = stage.differing[most_a][most_b];
    table.rows.push_back({Cell(to_string(stage.stage)), count(most), count(stage.elements),
                          Cell(most == 0 ? "-" : variants[most_a].name),
                          Cell(most == 0 ? "-" : variants[most_b].name)});
  }
  return table;
}

Json differences_json(const OrderStudy& prediction) {
  Json stages = Json::array();
  const auto& variants = prediction.options.variants;
  for (const DifferenceCount& stage : prediction.differences) {
    Json out = Json::object();
    out["stage"] = to_string(stage.stage);
    out["elements"] = stage.elements;
    out["pairs"] = Json::array();
    for (std::size_t a = 0; a < variants.size(); ++a) {
      for (std::size_t b = a + 1; b < variants.size(); ++b) {
        Json pair = Json::object();
        pair["a"] = variants[a].name;
        pair["b"] = variants[b].name;
        pair["differing"] = stage.differing[a][b];
        out["pairs"].push_back(std::move(pair));
      }
    }
    stages.push_back(std::move(out));
  }
  return stages;
}

Table setting_table(const OrderStudy& prediction, const GivenAttention& inputs) {
  const AttentionShape& shape = inputs.shape;
  const AttentionArithmetic& arithmetic = prediction.options.arithmetic;
  std::string rounded;
  for (const auto& [is_rounded, name] :
       {std::pair{arithmetic.round_scores, "scores"}, std::pair{arithmetic.round_p, "p"},
        std::pair{arithmetic.round_out, "out"}}) {
    if (is_rounded) rounded += (rounded.empty() ? "" : ", ") + std::string(name);
  }
  Table table;
  table.show_headings = false;
  table.columns = {{"setting", "setting", "", Align::left}, {"value", "value", "", Align::left}};
  const auto add = [&](std::string name, std::string value) {
    table.rows.push_back({Cell(std::move(name)), Cell(std::move(value))});
  };
  const auto counted = [](std::int64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  add("shape", fmt::format("{} on {}, head_dim {}, {}, {}",
                           counted(shape.query_heads, "query head", "query heads"),
                           counted(shape.kv_heads, "K/V head", "K/V heads"), shape.head_dim,
                           counted(shape.kv_len, "key", "keys"),
                           counted(shape.query_len, "query", "queries")));
  add("inputs", inputs.source);
  add("storage", std::string(inputs.storage->name));
  add("accumulator", fmt::format("{}, products {}", softfloat::format_name(arithmetic.accumulator),
                                 to_string(arithmetic.product)));
  add("rounded to storage", rounded.empty() ? "none" : rounded);
  return table;
}

Json input_json(const OrderStudy& prediction, const GivenAttention& inputs) {
  const AttentionShape& shape = inputs.shape;
  const AttentionArithmetic& arithmetic = prediction.options.arithmetic;
  Json input = Json::object();
  input["query_heads"] = shape.query_heads;
  input["kv_heads"] = shape.kv_heads;
  input["query_len"] = shape.query_len;
  input["kv_len"] = shape.kv_len;
  input["head_dim"] = shape.head_dim;
  input["format"] = inputs.storage->name;
  input["accumulate"] = softfloat::format_name(arithmetic.accumulator);
  input["product"] = to_string(arithmetic.product);
  input["round"] = Json::array();
  if (arithmetic.round_scores) input["round"].push_back("scores");
  if (arithmetic.round_p) input["round"].push_back("p");
  if (arithmetic.round_out) input["round"].push_back("out");
  input["orders"] = Json::array();
  for (const OrderedVariant& variant : prediction.options.variants) {
    Json order = Json::object();
    order["name"] = variant.name;
    order["qk"] = to_string(variant.orders.scores);
    order["sum"] = to_string(variant.orders.row_sum);
    order["pv"] = to_string(variant.orders.values);
    input["orders"].push_back(std::move(order));
  }
  for (const auto& [key, value] : inputs.description.items()) input[key] = value;
  return input;
}

// How far the orders are from exact attention, over the outputs that are finite.
std::string distance_text(const OrderStudy& prediction) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  std::int64_t not_finite = 0;
  std::int64_t elements = 0;
  for (const StageReport& stage : prediction.stages) {
    if (stage.stage != Stage::attention) continue;
    not_finite = std::max(not_finite, stage.error.not_finite);
    elements = stage.error.elements;
    if (all_overflow(stage.error)) continue;
    least = std::min(least, stage.error.relative_l2);
    most = std::max(most, stage.error.relative_l2);
  }
  const bool one = prediction.options.variants.size() == 1;
  std::string text;
  if (not_finite > 0) {
    text = fmt::format("{}{} of {} output elements {} infinite or NaN", one ? "" : "up to ",
                       not_finite, elements, not_finite == 1 ? "is" : "are");
    if (least > most) return text + ".";
    text += "; where finite, ";
  }
  const std::string distance =
      least == most ? fmt::format("{:.2e}", most) : fmt::format("{:.2e} to {:.2e}", least, most);
  return text + fmt::format("{} lies {} from exact attention (relative L2), within its bounds.",
                            one ? "this order" : "every order", distance);
}

std::string headline(const OrderStudy& prediction) {
  if (!prediction.bounds_hold) {
    return "An error exceeds its bound, which is a defect of kvsim: please report this command.";
  }
  std::string distance = distance_text(prediction);
  if (prediction.options.variants.size() == 1) {
    if (distance.front() == 't') distance.front() = 'T';
    return distance;
  }
  // The share of outputs that the order alone changes.
  std::int64_t differing = 0;
  std::int64_t elements = 0;
  for (const DifferenceCount& stage : prediction.differences) {
    if (stage.stage != Stage::attention) continue;
    elements = stage.elements;
    for (const auto& row : stage.differing) {
      for (const std::int64_t each : row) differing = std::max(differing, each);
    }
  }
  const double share =
      elements == 0 ? 0 : 100.0 * static_cast<double>(differing) / static_cast<double>(elements);
  return fmt::format(
      "The order of summation alone changes up to {} of {} output elements ({:.1f} %); {}",
      differing, elements, share, distance);
}

// Columns that people read beside each other; JSON has them all.
constexpr std::array<std::string_view, 7> stage_columns{"stage",
                                                        "order",
                                                        "mean_relative_error",
                                                        "relative_l2",
                                                        "max_ulp",
                                                        "running_bound_l2",
                                                        "a_priori_bound_l2"};
constexpr std::array<std::string_view, 5> control_columns{"control", "mean_relative_error",
                                                          "relative_l2", "max_ulp", "meaning"};

// Elements that no figure covers are told once for each stage and order.
void add_not_finite_notes(const OrderStudy& prediction, Table& table) {
  for (const StageReport& stage : prediction.stages) {
    if (stage.error.not_finite == 0) continue;
    table.notes.push_back(fmt::format(
        "{}, {}: {} of {} elements are infinite or NaN and in no figure", to_string(stage.stage),
        stage.variant, stage.error.not_finite, stage.error.elements));
  }
}

}  // namespace

Report order_study_report(const OrderStudy& prediction, const GivenAttention& inputs) {
  Report report;
  report.schema = "kvsim.predict/1";
  report.command = "predict";
  report.headline = headline(prediction);
  const Table stages = stage_table(prediction);
  const Table controls = control_table(prediction);
  report.tables.push_back(setting_table(prediction, inputs));
  report.tables.push_back(with_columns(stages, stage_columns));
  report.tables.back().notes.emplace_back(
      "bounds: relative L2 that rounding cannot exceed, from the intermediate results and from "
      "the inputs alone");
  report.tables.back().notes.emplace_back(
      "max (ulp): in units in the last place of the exact value, so large where that is near zero");
  add_not_finite_notes(prediction, report.tables.back());
  if (prediction.options.variants.size() > 1) {
    report.tables.push_back(difference_table(prediction));
    report.tables.push_back(stage_difference_table(prediction));
  }
  report.tables.push_back(with_columns(controls, control_columns));
  report.input = input_json(prediction, inputs);
  report.result = Json::object();
  report.result["stages"] = rows_as_json(stages);
  report.result["differences"] = differences_json(prediction);
  report.result["controls"] = rows_as_json(controls);
  report.result["bounds_hold"] = prediction.bounds_hold;
  return report;
}

}  // namespace kvsim
