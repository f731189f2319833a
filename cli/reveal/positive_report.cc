// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/positive_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/reveal/parts.h"
#include "cli/sink.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/positive_reveal.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

constexpr std::size_t listed_elements = 64;
constexpr std::size_t shown_tree = 400;  // characters

std::string hex(float value) {
  return softfloat::to_hex_float(softfloat::binary32, softfloat::from_float(value));
}

bool is_norm(const RevealRequest& request) { return request.shape.operation == "rms-norm"; }

std::string rows_text(const RevealRequest& request) {
  return fmt::format("{} of {}, N = {}, K = {}, {}", request.shape.operation,
                     request.backend->name(), request.shape.columns, request.shape.terms,
                     softfloat::format_name(request.shape.format));
}

std::string order_text(const gpu::RevealedRows& rows) {
  return rows.model ? to_string(rows.model->order) : "none found";
}

std::string replay_text(const gpu::RevealedRows& rows) {
  if (!rows.model) return "none";
  const std::string of =
      fmt::format("{} results of {} rows", rows.outputs_checked, rows.rows_checked);
  if (rows.explained) return of + " equal";
  return fmt::format("{} of {} differ", rows.outputs_different, of);
}

std::string unexplained_text(const gpu::PositiveRevelation& found) {
  for (const gpu::RevealedRows& rows : found.classes) {
    if (rows.explained) continue;
    const char* const why = found.orders.empty() ? "no order of the grammar has this tree"
                                                 : "no exp model gives these terms";
    return fmt::format("not explained: {}",
                       rows.model
                           ? fmt::format("rows {} ({})", runs_text(rows.rows), replay_text(rows))
                           : std::string(why));
  }
  return {};
}

/// What a softmax or a norm is besides its order, by name.
std::vector<std::pair<std::string, std::string>> rules_of(const RevealRequest& request,
                                                          const gpu::PositiveRevelation& found) {
  const auto& model = found.classes.front().model;
  if (!model) return {};
  if (is_norm(request)) {
    return {{"product", std::string(to_string(model->product))},
            {"root", std::string(gpu::to_string(model->root))},
            {"weight", std::string(gpu::to_string(model->weight))}};
  }
  std::vector<std::pair<std::string, std::string>> rules = {
      {"exp", gpu::to_string(model->exp)}, {"form", std::string(gpu::to_string(model->result))}};
  return rules;
}

/// Exp models that could not be told from the one that is named.
std::vector<std::string> other_exps(const gpu::PositiveRevelation& found) {
  std::vector<std::string> others;
  const auto& model = found.classes.front().model;
  for (const gpu::ExpChoice& exp : found.exps) {
    if (model && exp != model->exp) others.push_back(gpu::to_string(exp));
  }
  return others;
}

Table findings_table(const RevealRequest& request, const gpu::PositiveRevelation& found) {
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "name", "", Align::left}, {"value", "value", "", Align::left}};
  const auto row = [&](std::string name, std::string value) {
    table.rows.push_back({Cell(std::move(name)), Cell(std::move(value))});
  };
  const gpu::RevealedRows& main = found.classes.front();
  row("order", order_text(main));
  for (auto& [name, value] : rules_of(request, found)) {
    row(name == "product" ? "squares" : name == "form" ? "result" : name, std::move(value));
  }
  if (const auto others = other_exps(found); !others.empty()) {
    row("exp not told from", fmt::format("{}", fmt::join(others, "; ")));
  }
  if (!found.absorbs) row("sums", "more than 24 bits: nothing is lost, and no tree shows");
  row("replay", replay_text(main));
  row("calls", fmt::format("{}: {} for the tree ({} probes), {} for classes, {} for exp, {} for "
                           "the check",
                           found.calls.all(), found.calls.tree, found.calls.probes,
                           found.calls.classes, found.calls.arithmetic, found.calls.check));
  const std::string text = gpu::to_string(found.tree);
  row("tree", text.size() <= shown_tree ? text : text.substr(0, shown_tree) + " …");
  row("tree sha256", gpu::digest(found.tree));
  return table;
}

Table classes_table(const gpu::PositiveRevelation& found) {
  Table table;
  table.title = "rows that give other bits";
  table.columns = {{"rows", "rows", "", Align::left},
                   {"order", "order", "", Align::left},
                   {"replay", "replay", "", Align::left}};
  for (const gpu::RevealedRows& rows : found.classes) {
    table.rows.push_back(
        {Cell(runs_text(rows.rows)), Cell(order_text(rows)), Cell(replay_text(rows))});
  }
  return table;
}

Table failing_table(const gpu::FailingRow& failing, bool norm) {
  Table table;
  table.title = fmt::format("smallest difference: column {}, all other elements {}", failing.column,
                            norm ? "0" : "69 below the largest");
  table.columns = {{"column", "column", "", Align::right}, {"x", "x", "", Align::left}};
  for (std::size_t i = 0; i < failing.columns.size() && i < listed_elements; ++i) {
    table.rows.push_back({Cell(fmt::to_string(failing.columns[i])), Cell(hex(failing.x[i]))});
  }
  table.notes.push_back(
      fmt::format("seen {}, replayed {}", hex(failing.seen), hex(failing.replayed)));
  return table;
}

Json failing_json(const gpu::FailingRow& failing) {
  Json out = Json::object();
  out["column"] = failing.column;
  out["seen"] = hex(failing.seen);
  out["replayed"] = hex(failing.replayed);
  out["eps"] = failing.epsilon ? Json(*failing.epsilon) : Json();
  out["elements"] = Json::array();
  for (std::size_t i = 0; i < failing.columns.size(); ++i) {
    out["elements"].push_back(Json{{"column", failing.columns[i]}, {"x", hex(failing.x[i])}});
  }
  return out;
}

Json found_json(const RevealRequest& request, const gpu::PositiveRevelation& found) {
  const gpu::RevealedRows& main = found.classes.front();
  Json out = Json::object();
  out["order"] = main.model ? Json(to_string(main.model->order)) : Json();
  for (auto& [name, value] : rules_of(request, found)) out[name] = value;
  out["accumulator"] = found.absorbs ? Json("binary32") : Json();
  out["output"] =
      main.model ? Json(std::string(softfloat::format_name(main.model->output))) : Json();
  out["explained"] = found.explained();
  out["calls"] = calls_json(found.calls);
  out["tree"] = gpu::to_string(found.tree);
  out["tree_sha256"] = gpu::digest(found.tree);
  out["other_orders"] = Json::array();
  for (const Order& order : found.orders) out["other_orders"].push_back(to_string(order));
  if (!is_norm(request)) out["exp_not_told_apart"] = other_exps(found);
  out["classes"] = Json::array();
  for (const gpu::RevealedRows& rows : found.classes) {
    out["classes"].push_back(
        Json{{"rows", runs_text(rows.rows)},
             {"order", rows.model ? Json(order_text(rows)) : Json()},
             {"explained", rows.explained},
             {"rows_checked", rows.rows_checked},
             {"outputs_checked", rows.outputs_checked},
             {"outputs_different", rows.outputs_different},
             {"failing", rows.failing ? failing_json(*rows.failing) : Json()}});
  }
  return out;
}

Report one_report(const RevealRequest& request, const gpu::PositiveRevelation& found,
                  const std::vector<gpu::Dependence>& dependences) {
  const gpu::RevealedRows& main = found.classes.front();
  Report report;
  report.schema = "kvsim.reveal/1";
  report.command = "reveal";
  report.headline =
      main.explained ? fmt::format("{}: {} gives every bit.", rows_text(request), order_text(main))
                     : fmt::format("{}: not explained.", rows_text(request));
  report.tables = {findings_table(request, found)};
  if (found.classes.size() > 1) report.tables.push_back(classes_table(found));
  report.tables.push_back(dependences_table(dependences));
  for (const gpu::RevealedRows& rows : found.classes) {
    if (rows.failing) report.tables.push_back(failing_table(*rows.failing, is_norm(request)));
  }
  report.input = input_json(request);
  report.result = found_json(request, found);
  report.result["dependences"] = dependences_json(dependences);
  report.result["fingerprint"] = fingerprint_json(*request.backend);
  return report;
}

Report sweep_report(const RevealRequest& request, const SweepRequest& sweep,
                    const std::vector<gpu::PositiveTermClass>& classes) {
  Report report;
  report.schema = "kvsim.reveal/1";
  report.command = "reveal";
  report.headline =
      fmt::format("{}: {} class{} from k = {} to {}.", rows_text(request), classes.size(),
                  classes.size() == 1 ? "" : "es", sweep.first, sweep.last);
  Table table;
  table.columns = {{"sizes", "k", "", Align::left}, {"order", "order", "", Align::left}};
  for (auto& [name, value] : rules_of(request, classes.front().found)) {
    table.columns.push_back({name, name == "product" ? "squares" : name, "", Align::left});
  }
  table.columns.push_back({"replay", "replay", "", Align::left});
  Json rows = Json::array();
  for (const gpu::PositiveTermClass& one : classes) {
    const gpu::RevealedRows& main = one.found.classes.front();
    std::vector<Cell> cells = {Cell(one.terms.first == one.terms.last
                                        ? fmt::to_string(one.terms.first)
                                        : fmt::format("{}–{}", one.terms.first, one.terms.last)),
                               Cell(order_text(main))};
    for (auto& [name, value] : rules_of(request, one.found)) cells.emplace_back(std::move(value));
    cells.resize(table.columns.size() - 1, Cell("-"));
    cells.emplace_back(replay_text(main));
    table.rows.push_back(std::move(cells));
    Json row{{"first", one.terms.first}, {"last", one.terms.last}};
    row.update(found_json(request, one.found));
    rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
  report.input = input_json(request);
  report.result = Json{{"sweep", "k"},
                       {"sizes", std::move(rows)},
                       {"fingerprint", fingerprint_json(*request.backend)}};
  return report;
}

void complain(const gpu::PositiveRevelation& found, Answer& answer) {
  if (found.explained() || answer.exit_code != ExitCode::done) return;
  answer.exit_code = ExitCode::cannot_tell;
  answer.complaint = unexplained_text(found);
}

Result<Answer> run_sweep(RevealRequest& request, const SweepRequest& swept) {
  if (swept.name != "k") {
    return Error{ErrorKind::usage, fmt::format("--sweep {} of {}; accepted: k=A..B", swept.text,
                                               request.shape.operation)};
  }
  const auto classes = gpu::sweep_positive(*request.backend, request.shape, request.options,
                                           {swept.first, swept.last});
  if (!classes) return classes.error();
  Answer answer;
  answer.report = sweep_report(request, swept, *classes);
  for (const gpu::PositiveTermClass& one : *classes) complain(one.found, answer);
  return answer;
}

}  // namespace

Result<Answer> run_positive_reveal(RevealRequest& request) {
  if (request.save) {
    return Error{ErrorKind::usage, fmt::format("--save of {}: sums of products alone are kept",
                                               request.shape.operation)};
  }
  if (!request.same_row.empty()) {
    return Error{ErrorKind::usage,
                 fmt::format("--same-row of {}: sums of products alone have rows among others; "
                             "\"a row alone\" tells it here",
                             request.shape.operation)};
  }
  if (request.sweep) return run_sweep(request, *request.sweep);
  auto of = gpu::PositiveOperator::make(*request.backend, request.shape);
  if (!of) return of.error();
  const auto found = gpu::reveal_positive(*of, request.options);
  if (!found) return found.error();
  const auto dependences = gpu::positive_dependences(*request.backend, request.shape,
                                                     request.threads, request.options.seed);
  if (!dependences) return dependences.error();
  if (request.svg) {
    const auto written = write_output_file(*request.svg, gpu::to_svg(found->tree));
    if (!written) return written.error();
  }
  Answer answer;
  answer.report = one_report(request, *found, *dependences);
  complain(*found, answer);
  return answer;
}

}  // namespace kvsim
