// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/order_study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cli/predict/order_study_tables.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

namespace tables = order_study_tables;

Json differences_json(const OrderStudy& study) {
  Json stages = Json::array();
  const auto& variants = study.options.variants;
  for (const DifferenceCount& stage : study.differences) {
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

Json input_json(const OrderStudy& study, const GivenAttention& inputs) {
  const AttentionShape& shape = inputs.shape;
  const AttentionArithmetic& arithmetic = study.options.arithmetic;
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
  for (const OrderedVariant& variant : study.options.variants) {
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
std::string distance_text(const OrderStudy& study) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  std::int64_t not_finite = 0;
  std::int64_t elements = 0;
  for (const StageReport& stage : study.stages) {
    if (stage.stage != Stage::attention) continue;
    not_finite = std::max(not_finite, stage.error.not_finite);
    elements = stage.error.elements;
    if (tables::all_overflow(stage.error)) continue;
    least = std::min(least, stage.error.relative_l2);
    most = std::max(most, stage.error.relative_l2);
  }
  const bool one = study.options.variants.size() == 1;
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

std::string headline(const OrderStudy& study) {
  if (!study.bounds_hold) {
    return "An error exceeds its bound, which is a defect of kvsim: please report this command.";
  }
  std::string distance = distance_text(study);
  if (study.options.variants.size() == 1) {
    if (distance.front() == 't') distance.front() = 'T';
    return distance;
  }
  // The share of outputs that the order alone changes.
  std::int64_t differing = 0;
  std::int64_t elements = 0;
  for (const DifferenceCount& stage : study.differences) {
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
void add_not_finite_notes(const OrderStudy& study, Table& table) {
  for (const StageReport& stage : study.stages) {
    if (stage.error.not_finite == 0) continue;
    table.notes.push_back(fmt::format(
        "{}, {}: {} of {} elements are infinite or NaN and in no figure", to_string(stage.stage),
        stage.variant, stage.error.not_finite, stage.error.elements));
  }
}

}  // namespace

Report order_study_report(const OrderStudy& study, const GivenAttention& inputs) {
  Report report;
  report.schema = "kvsim.predict/1";
  report.command = "predict";
  report.headline = headline(study);
  const Table stages = tables::stages(study);
  const Table controls = tables::controls(study);
  report.tables.push_back(tables::settings(study, inputs));
  report.tables.push_back(with_columns(stages, stage_columns));
  report.tables.back().notes.emplace_back(
      "bounds: relative L2 that rounding cannot exceed, from the intermediate results and from "
      "the inputs alone");
  report.tables.back().notes.emplace_back(
      "max (ulp): in units in the last place of the exact value, so large where that is near zero");
  add_not_finite_notes(study, report.tables.back());
  if (study.options.variants.size() > 1) {
    report.tables.push_back(tables::differences(study));
    report.tables.push_back(tables::stage_differences(study));
  }
  report.tables.push_back(with_columns(controls, control_columns));
  report.input = input_json(study, inputs);
  report.result = Json::object();
  report.result["stages"] = rows_as_json(stages);
  report.result["differences"] = differences_json(study);
  report.result["controls"] = rows_as_json(controls);
  report.result["bounds_hold"] = study.bounds_hold;
  return report;
}

}  // namespace kvsim
