// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/parts.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

constexpr std::size_t listed_columns = 12;

std::string format_text(const softfloat::Format& format) {
  return std::string(softfloat::format_name(format));
}

}  // namespace

std::string runs_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (runs++ == listed_columns) return text + ", …";
    if (!text.empty()) text += ", ";
    text += end == i ? fmt::to_string(numbers[i]) : fmt::format("{}–{}", numbers[i], numbers[end]);
    i = end + 1;
  }
  return text;
}

std::string order_text(const gpu::RevealedSums& sums) {
  if (!sums.model) return sums.tree ? "none found" : "not probed";
  if (sums.model->order) return to_string(*sums.model->order);
  std::string text = sums.orders.empty()
                         ? std::string("the tree itself")
                         : fmt::format("the tree of {}", to_string(sums.orders.front()));
  if (const auto& first = sums.model->wide_from) {
    text += *first == 0 ? " in binary64" : fmt::format(", from term {} on in binary64", *first);
  }
  return text;
}

std::string product_of(const gpu::RevealedSums& sums) {
  if (!sums.model) return "-";
  if (sums.model->order && unit_of(*sums.model->order)) return "of the unit";
  if (sums.tree && sums.arithmetic.product == "not visible") return "exact";
  // A lane of one term is rounded under fused products too: the order says which those are.
  return sums.model->order ? std::string(to_string(sums.model->product)) : sums.arithmetic.product;
}

std::string check_text(const gpu::RevealedSums& sums) {
  if (sums.explained) return fmt::format("{} equal", sums.outputs_checked);
  if (!sums.model) return "none";
  return fmt::format("{} of {} differ", sums.outputs_different, sums.outputs_checked);
}

std::string what_text(const RevealRequest& request) {
  return fmt::format("{} of {}, M = {}, N = {}, K = {}, {}", request.shape.operation,
                     request.backend->name(), request.shape.rows, request.shape.columns,
                     request.shape.terms, format_text(request.shape.format));
}

Json model_json(const gpu::RevealedSums& sums) {
  Json out = Json::object();
  const auto& model = sums.model;
  out["order"] = model && model->order ? Json(to_string(*model->order)) : Json();
  out["product"] = model ? Json(std::string(to_string(model->product))) : Json();
  out["accumulator"] = model ? Json(format_text(model->accumulator)) : Json();
  out["binary64_from"] = model && model->wide_from ? Json(*model->wide_from) : Json();
  out["output"] = model ? Json(format_text(model->output)) : Json();
  return out;
}

Json calls_json(const gpu::RevealCalls& calls) {
  return Json{{"all", calls.all()},   {"classes", calls.classes},
              {"tree", calls.tree},   {"arithmetic", calls.arithmetic},
              {"check", calls.check}, {"probes", calls.probes}};
}

Json fingerprint_json(const gpu::Backend& backend) {
  Json out = Json::object();
  for (const auto& [name, value] : backend.fingerprint().entries) out[name] = value;
  return out;
}

Json input_json(const RevealRequest& request) {
  const gpu::ReductionShape& shape = request.shape;
  Json out = Json::object();
  out["backend"] = request.backend->name();
  out["operation"] = shape.operation;
  out["m"] = shape.rows;
  out["n"] = shape.columns;
  out["k"] = shape.terms;
  out["batch"] = shape.batch;
  out["dtype"] = format_text(shape.format);
  out["misaligned"] = shape.misalignment;
  out["threads"] = request.threads;
  out["attributes"] = Json::object();
  for (const auto& [key, value] : shape.attributes) out["attributes"][key] = value;
  out["seed"] = request.options.seed;
  out["sweep"] = request.sweep ? Json(request.sweep->text) : Json();
  out["same_row"] = request.same_row.empty() ? Json() : Json(request.same_row);
  return out;
}

Table dependences_table(const std::vector<gpu::Dependence>& dependences) {
  Table table;
  table.title = "what else changes the bits";
  table.columns = {{"what", "changed", "", Align::left}, {"bits", "bits", "", Align::left}};
  for (const gpu::Dependence& one : dependences) {
    table.rows.push_back(
        {Cell(one.what),
         Cell(!one.possible        ? std::string("nothing to change")
              : one.different == 0 ? std::string("equal")
                                   : fmt::format("{} of {} differ", one.different, one.compared))});
  }
  return table;
}

Json dependences_json(const std::vector<gpu::Dependence>& dependences) {
  Json out = Json::array();
  for (const gpu::Dependence& one : dependences) {
    out.push_back(Json{{"what", one.what},
                       {"possible", one.possible},
                       {"compared", one.compared},
                       {"different", one.different}});
  }
  return out;
}

}  // namespace kvsim
