// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/reveal/parts.h"
#include "gpu/reveal/addition_tree.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

constexpr std::size_t listed_terms = 64;
constexpr std::size_t shown_tree = 400;  // characters

std::string sums_text(const gpu::ArithmeticFindings& found) {
  std::string text;
  for (const gpu::NodeRounding& seen : found.sums) {
    if (!text.empty()) text += "; ";
    text += seen.precision == 0
                ? std::string("more bits than can be asked for")
                : fmt::format("{} bits, {}", seen.precision, gpu::to_string(seen.rounding));
    if (found.sums.size() > 1) text += fmt::format(" ({} nodes)", seen.nodes);
  }
  return text;
}

Json failing_json(const gpu::FailingSum& failing) {
  Json out = Json::object();
  out["row"] = failing.row;
  out["column"] = failing.column;
  const auto hex = [](float value) {
    return softfloat::to_hex_float(softfloat::binary32, softfloat::from_float(value));
  };
  out["seen"] = hex(failing.seen);
  out["replayed"] = hex(failing.replayed);
  out["terms"] = Json::array();
  for (std::size_t i = 0; i < failing.terms.size(); ++i) {
    out["terms"].push_back(Json{{"term", failing.terms[i]},
                                {"left", hex(failing.left[i])},
                                {"right", hex(failing.right[i])}});
  }
  return out;
}

Json class_json(const gpu::RevealedSums& sums) {
  Json out = Json::object();
  out["rows"] = runs_text(sums.where.rows);
  out["columns"] = runs_text(sums.where.columns);
  out["sums"] = sums.where.rows.size() * sums.where.columns.size();
  const Json model = model_json(sums);
  for (const auto& [key, value] : model.items()) out[key] = value;
  out["tree"] = sums.tree ? Json(gpu::to_string(*sums.tree)) : Json();
  out["tree_sha256"] = sums.tree ? Json(gpu::digest(*sums.tree)) : Json();
  out["other_orders"] = Json::array();
  for (const Order& order : sums.orders) out["other_orders"].push_back(to_string(order));
  const gpu::ArithmeticFindings& seen = sums.arithmetic;
  out["products_seen"] = seen.product;
  out["sums_seen"] = sums_text(seen);
  out["fan_in"] = seen.fan_in > 0 ? Json(seen.fan_in) : Json();
  out["fraction_bits"] = seen.fraction_bits ? Json(*seen.fraction_bits) : Json();
  const bool sees_zeros = seen.zero_exponent.kind != gpu::Seen::Kind::not_visible;
  out["zero_exponent"] = sees_zeros ? Json(gpu::to_string(seen.zero_exponent)) : Json();
  out["why_no_zero_exponent"] =
      seen.why_no_zero_exponent.empty() ? Json() : Json(std::string(seen.why_no_zero_exponent));
  out["output_rounding"] = std::string(gpu::to_string(seen.output));
  out["subnormal_factors"] = std::string(gpu::to_string(seen.subnormal_factors));
  out["subnormal_sums"] = std::string(gpu::to_string(seen.subnormal_sums));
  out["explained"] = sums.explained;
  out["outputs_checked"] = sums.outputs_checked;
  out["outputs_different"] = sums.outputs_different;
  out["subnormals_as_replayed"] = sums.subnormals_as_replayed;
  out["failing"] = sums.failing ? failing_json(*sums.failing) : Json();
  return out;
}

Table names_and_values() {
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "name", "", Align::left}, {"value", "value", "", Align::left}};
  return table;
}

Table findings_table(const gpu::RevealedSums& sums, const gpu::Revelation& found) {
  Table table = names_and_values();
  const gpu::ArithmeticFindings& seen = sums.arithmetic;
  const auto row = [&](std::string name, std::string value) {
    if (!value.empty()) table.rows.push_back({Cell(std::move(name)), Cell(std::move(value))});
  };
  row("order", order_text(sums));
  row("products", product_of(sums));
  row("sums", sums_text(seen));
  if (seen.fan_in > 0) row("terms of a fused node", fmt::to_string(seen.fan_in));
  if (seen.fraction_bits) {
    row("fraction bits of a fused node",
        fmt::format("{}{}", *seen.fraction_bits, seen.truncates_down ? ", cut off downward" : ""));
  }
  if (seen.fan_in > 0) {
    row("exponent of its zero terms",
        seen.why_no_zero_exponent.empty()
            ? gpu::to_string(seen.zero_exponent)
            : fmt::format("not revealed: {}", seen.why_no_zero_exponent));
  }
  if (seen.output != gpu::RoundingSeen::unknown) {
    row("output", std::string(gpu::to_string(seen.output)));
  }
  row("subnormal factors", std::string(gpu::to_string(seen.subnormal_factors)));
  row("subnormal sums", std::string(gpu::to_string(seen.subnormal_sums)));
  row("replay", check_text(sums));
  row("calls", fmt::format("{}: {} for the tree ({} probes), {} for classes, {} for arithmetic, {} "
                           "for the check",
                           found.calls.all(), found.calls.tree, found.calls.probes,
                           found.calls.classes, found.calls.arithmetic, found.calls.check));
  if (sums.tree) {
    const std::string text = gpu::to_string(*sums.tree);
    row("tree", text.size() <= shown_tree ? text : text.substr(0, shown_tree) + " …");
    row("tree sha256", gpu::digest(*sums.tree));
  }
  return table;
}

Table classes_table(const gpu::Revelation& found) {
  Table table;
  table.title = "sums that are added otherwise";
  table.columns = {{"rows", "rows", "", Align::left},
                   {"columns", "columns", "", Align::left},
                   {"order", "order", "", Align::left},
                   {"product", "products", "", Align::left},
                   {"replay", "replay", "", Align::left}};
  for (const gpu::RevealedSums& sums : found.classes) {
    table.rows.push_back({Cell(runs_text(sums.where.rows)), Cell(runs_text(sums.where.columns)),
                          Cell(order_text(sums)), Cell(product_of(sums)), Cell(check_text(sums))});
  }
  return table;
}

Table failing_table(const gpu::FailingSum& failing) {
  Table table;
  table.title = fmt::format("smallest difference: row {}, column {}, all other terms 0",
                            failing.row, failing.column);
  table.columns = {{"term", "term", "", Align::right},
                   {"left", "x", "", Align::left},
                   {"right", "w", "", Align::left}};
  const Json json = failing_json(failing);
  for (const Json& term : json["terms"]) {
    if (table.rows.size() == listed_terms) break;
    table.rows.push_back({Cell(term["term"].dump()), Cell(term["left"].get<std::string>()),
                          Cell(term["right"].get<std::string>())});
  }
  table.notes.push_back(fmt::format("seen {}, replayed {}", json["seen"].get<std::string>(),
                                    json["replayed"].get<std::string>()));
  return table;
}

}  // namespace

std::string exception_text(const gpu::RevealedSums& sums) {
  return fmt::format("rows {}, columns {}: {}, products {}", runs_text(sums.where.rows),
                     runs_text(sums.where.columns), order_text(sums), product_of(sums));
}

std::string unexplained_text(const gpu::Revelation& found) {
  for (const gpu::RevealedSums& sums : found.classes) {
    if (sums.explained) continue;
    return fmt::format(
        "not explained: columns {} ({})", runs_text(sums.where.columns),
        !sums.model ? "no order of the grammar; --most-calls probes them" : check_text(sums));
  }
  return {};
}

Report reveal_report(const RevealRequest& request, const gpu::Revelation& found,
                     const std::vector<gpu::Dependence>& dependences) {
  const gpu::RevealedSums& main = found.classes.front();
  Report report;
  report.schema = "kvsim.reveal/1";
  report.command = "reveal";
  report.headline =
      main.explained ? fmt::format("{}: {} gives every bit.", what_text(request), order_text(main))
                     : fmt::format("{}: not explained.", what_text(request));
  report.tables = {findings_table(main, found)};
  if (found.classes.size() > 1) report.tables.push_back(classes_table(found));
  if (!dependences.empty()) report.tables.push_back(dependences_table(dependences));
  for (const gpu::RevealedSums& sums : found.classes) {
    if (sums.failing) report.tables.push_back(failing_table(*sums.failing));
  }
  report.input = input_json(request);
  Json result = model_json(main);
  result["explained"] = found.explained();
  result["calls"] = calls_json(found.calls);
  result["classes"] = Json::array();
  for (const gpu::RevealedSums& sums : found.classes) result["classes"].push_back(class_json(sums));
  result["dependences"] = dependences_json(dependences);
  result["fingerprint"] = fingerprint_json(*request.backend);
  report.result = std::move(result);
  return report;
}

Report same_row_report(const RevealRequest& request, const std::vector<gpu::RowAmongOthers>& rows) {
  Report report;
  report.schema = "kvsim.reveal/1";
  report.command = "reveal";
  const auto bits = [](std::int64_t different, std::int64_t compared) {
    return different == 0 ? fmt::format("{} equal", compared)
                          : fmt::format("{} of {} differ", different, compared);
  };
  std::int64_t unlike = 0;
  std::int64_t different = 0;
  Table table;
  table.columns = {
      {"m", "m", "", Align::right},
      {"order", "order", "", Align::left},
      {"product", "products", "", Align::left},
      {"different", fmt::format("row 0 against m = {}", rows.front().rows), "", Align::left},
      {"unlike_replay", "row 0 against its replay", "", Align::left}};
  Json list = Json::array();
  for (const gpu::RowAmongOthers& row : rows) {
    const gpu::RevealedSums& main = row.found.classes.front();
    unlike += row.unlike_replay;
    different = std::max(different, row.different);
    table.rows.push_back({Cell(fmt::to_string(row.rows)), Cell(order_text(main)),
                          Cell(product_of(main)), Cell(bits(row.different, row.compared)),
                          Cell(bits(row.unlike_replay, row.compared))});
    Json one = Json::object();
    one["m"] = row.rows;
    const Json model = model_json(main);
    for (const auto& [key, value] : model.items()) one[key] = value;
    one["explained"] = row.found.explained();
    one["compared"] = row.compared;
    one["different"] = row.different;
    one["unlike_replay"] = row.unlike_replay;
    one["first_different"] = row.first_different < 0 ? Json() : Json(row.first_different);
    one["classes"] = Json::array();
    for (const gpu::RevealedSums& sums : row.found.classes)
      one["classes"].push_back(class_json(sums));
    list.push_back(std::move(one));
  }
  const gpu::ReductionShape& shape = request.shape;
  report.headline = fmt::format(
      "row 0 of {} of {}, N = {}, K = {}, {}: {}; {}.", shape.operation, request.backend->name(),
      shape.columns, shape.terms, softfloat::format_name(shape.format),
      different == 0 ? std::string("the same bits at every m")
                     : fmt::format("{} of {} outputs change with m", different, shape.columns),
      unlike == 0 ? "the replay gives every bit" : "the replay does not give every bit");
  const auto changed = std::ranges::find_if(
      rows, [](const gpu::RowAmongOthers& row) { return row.first_different >= 0; });
  if (changed != rows.end()) {
    const std::int64_t column = changed->first_different;
    std::string note = fmt::format("output {}:", column);
    for (const gpu::RowAmongOthers& row : rows) {
      note += fmt::format("{} m = {} {}", &row == &rows.front() ? "" : ",", row.rows,
                          softfloat::to_hex_float(
                              softfloat::binary32,
                              softfloat::from_float(row.sums[static_cast<std::size_t>(column)])));
    }
    table.notes.push_back(std::move(note));
  }
  report.tables.push_back(std::move(table));
  report.input = input_json(request);
  report.result =
      Json{{"same_row", std::move(list)}, {"fingerprint", fingerprint_json(*request.backend)}};
  return report;
}

Report sweep_report(const RevealRequest& request, const SweepRequest& sweep,
                    const std::vector<RevealedSizes>& classes) {
  const std::string& name = sweep.name;
  Report report;
  report.schema = "kvsim.reveal/1";
  report.command = "reveal";
  report.headline =
      fmt::format("{}: {} class{} from {} = {} to {}.", what_text(request), classes.size(),
                  classes.size() == 1 ? "" : "es", name, sweep.first, sweep.last);
  Table table;
  table.columns = {{"sizes", name, "", Align::left},
                   {"order", "order", "", Align::left},
                   {"product", "products", "", Align::left},
                   {"replay", "replay", "", Align::left}};
  Json rows = Json::array();
  for (const RevealedSizes& one : classes) {
    const gpu::RevealedSums& main = one.found.classes.front();
    const std::string sizes = one.sizes.first == one.sizes.last
                                  ? fmt::to_string(one.sizes.first)
                                  : fmt::format("{}–{}", one.sizes.first, one.sizes.last);
    table.rows.push_back(
        {Cell(sizes), Cell(order_text(main)), Cell(product_of(main)), Cell(check_text(main))});
    Json row = Json::object();
    row["first"] = one.sizes.first;
    row["last"] = one.sizes.last;
    const Json model = model_json(main);
    for (const auto& [key, value] : model.items()) row[key] = value;
    row["explained"] = one.found.explained();
    row["calls"] = calls_json(one.found.calls);
    row["classes"] = Json::array();
    for (const gpu::RevealedSums& sums : one.found.classes)
      row["classes"].push_back(class_json(sums));
    rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
  report.input = input_json(request);
  report.result = Json{{"sweep", name},
                       {"sizes", std::move(rows)},
                       {"fingerprint", fingerprint_json(*request.backend)}};
  return report;
}

}  // namespace kvsim
