// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/order_study_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim::order_study_tables {
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

}  // namespace

bool all_overflow(const ErrorSummary& error) {
  return error.elements > 0 && error.not_finite == error.elements;
}

Table settings(const OrderStudy& study, const GivenAttention& inputs) {
  const AttentionShape& shape = inputs.shape;
  const AttentionArithmetic& arithmetic = study.options.arithmetic;
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

Table stages(const OrderStudy& study) {
  Table table;
  table.title = "Error of each stage against its exact result:";
  table.columns = {{"stage", "stage", "", Align::left}, {"order", "order", "", Align::left}};
  for (Column& column : error_columns()) table.columns.push_back(std::move(column));
  for (const StageReport& stage : study.stages) {
    std::vector<Cell> cells{Cell(to_string(stage.stage)), Cell(stage.variant)};
    add_error_cells(cells, stage.format, stage.error, stage.stage != Stage::attention);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table controls(const OrderStudy& study) {
  Table table;
  table.title = "Controls (attention as a whole):";
  table.columns = {{"control", "control", "", Align::left}};
  for (Column& column : error_columns()) table.columns.push_back(std::move(column));
  table.columns.push_back({"meaning", "meaning", "", Align::left});
  for (const ControlReport& control : study.controls) {
    std::vector<Cell> cells{Cell(control.name)};
    add_error_cells(cells, control.format, control.error, false);
    cells.emplace_back(control.meaning);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table differences(const OrderStudy& study) {
  const auto& variants = study.options.variants;
  const auto attention =
      std::find_if(study.differences.begin(), study.differences.end(),
                   [](const DifferenceCount& each) { return each.stage == Stage::attention; });
  Table table;
  if (attention == study.differences.end()) return table;
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

Table stage_differences(const OrderStudy& study) {
  const auto& variants = study.options.variants;
  Table table;
  table.title = "The same for each stage alone, the two orders that differ most:";
  table.columns = {{"stage", "stage", "", Align::left},
                   {"differing", "differing", "elements", Align::right},
                   {"elements", "of", "", Align::right},
                   {"a", "order", "", Align::left},
                   {"b", "other order", "", Align::left}};
  for (const DifferenceCount& stage : study.differences) {
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

}  // namespace kvsim::order_study_tables
