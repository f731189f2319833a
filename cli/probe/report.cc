// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/probe/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "softfloat/text.h"

namespace kvsim {
namespace {

using gpu::ComparedProperty;

/// How many properties show, and how many of them are not those of the row.
struct PropertyCount {
  std::size_t seen = 0;
  std::size_t different = 0;
};

PropertyCount count_properties(const gpu::UnitProbe& probe) {
  PropertyCount count;
  for (const ComparedProperty& one : probe.properties) {
    if (!one.agrees.has_value()) continue;
    ++count.seen;
    if (!*one.agrees) ++count.different;
  }
  return count;
}

std::string agreement(const ComparedProperty& one) {
  if (!one.agrees.has_value()) return "-";
  return *one.agrees ? "agrees" : "DIFFERS";
}

Json seen_json(const gpu::Seen& seen) {
  if (seen.kind == gpu::Seen::Kind::number) return seen.number;
  if (seen.kind == gpu::Seen::Kind::not_visible) return {};
  return to_string(seen);
}

Json first_json(const UnitResult& unit) {
  const gpu::UnitProbe& probe = unit.probe;
  if (probe.different == 0) return {};
  const std::size_t i = probe.first_different;
  const softfloat::Format& output = unit.probed->row.output;
  return Json{{"row", i},
              {"seen", softfloat::to_bits_text(output, probe.results[i])},
              {"expected", softfloat::to_bits_text(
                               output, gpu::simulate_row(unit.probed->row, probe.rows[i]))}};
}

Json unit_json(const UnitResult& unit) {
  Json out = Json::object();
  out["unit"] = to_string(unit.probed->unit);
  out["row"] = to_string(unit.probed->row);
  out["equal"] = unit.probe.equal();
  out["rows"] = unit.probe.rows.size();
  out["different"] = unit.probe.different;
  out["first"] = first_json(unit);
  out["properties"] = Json::array();
  for (const ComparedProperty& one : unit.probe.properties) {
    out["properties"].push_back(
        Json{{"name", one.name},
             {"seen", seen_json(one.seen)},
             {"declared", seen_json(one.declared)},
             {"agrees", one.agrees.has_value() ? Json(*one.agrees) : Json()}});
  }
  const auto& problem = unit.probe.no_structure;
  out["no_structure"] = problem ? Json(*problem) : Json();
  out["file"] = unit.file.empty() ? Json() : Json(unit.file);
  return out;
}

Table property_table(const UnitResult& unit, bool titled) {
  Table table;
  if (titled) table.title = fmt::format("{}:", to_string(unit.probed->unit));
  table.columns = {{"name", "property", "", Align::left},
                   {"seen", "seen", "", Align::left},
                   {"declared", "in the table", "", Align::left},
                   {"agrees", "", "", Align::left}};
  for (const ComparedProperty& one : unit.probe.properties) {
    table.rows.push_back(
        {Cell(one.name), Cell(to_string(one.seen)),
         Cell(one.declared.kind == gpu::Seen::Kind::not_visible ? std::string("-")
                                                                : to_string(one.declared)),
         Cell(agreement(one))});
  }
  if (const auto& problem = unit.probe.no_structure; problem) table.notes.push_back(*problem);
  if (unit.probe.different > 0) {
    const Json first = first_json(unit);
    table.notes.push_back(fmt::format("{} of {} results differ; row {} gives {}, the table {}",
                                      unit.probe.different, unit.probe.rows.size(),
                                      unit.probe.first_different, first["seen"].get<std::string>(),
                                      first["expected"].get<std::string>()));
  }
  return table;
}

Table unit_table(const std::vector<UnitResult>& units) {
  Table table;
  table.columns = {{"unit", "unit", "", Align::left},
                   {"properties", "properties that show", "", Align::right},
                   {"differ", "differ", "", Align::right},
                   {"rows", "results", "", Align::right},
                   {"different", "differ", "", Align::right}};
  for (const UnitResult& unit : units) {
    const PropertyCount count = count_properties(unit.probe);
    table.rows.push_back(
        {Cell(to_string(unit.probed->unit)),
         Cell(unit.probe.no_structure ? std::string("none") : fmt::to_string(count.seen)),
         Cell(fmt::to_string(count.different)), Cell(fmt::to_string(unit.probe.rows.size())),
         Cell(fmt::to_string(unit.probe.different))});
  }
  return table;
}

Table elementary_table(const std::vector<TableResult>& tables) {
  Table table;
  table.title = "Tables of functions:";
  table.columns = {{"function", "instruction", "", Align::left},
                   {"entries", "entries", "", Align::right},
                   {"not_rounded", "not correctly rounded", "", Align::right},
                   {"largest_error", "largest error", "ulp", Align::right},
                   {"by_rule", "other arguments by the rule", "", Align::left}};
  for (const TableResult& one : tables) {
    table.rows.push_back({Cell(one.row->instruction), Cell(fmt::to_string(one.table.values.size())),
                          Cell(fmt::to_string(one.table.not_rounded)),
                          Cell(fmt::format("{:.3g}", one.table.largest_error)),
                          Cell(fmt::format("{} of {}", one.table.by_rule, one.table.tried))});
    table.notes.push_back(fmt::format("rule of {}: {}", one.row->name, one.row->rule));
    if (!one.problem.empty()) table.notes.push_back(one.problem);
  }
  return table;
}

Json table_json(const TableResult& one) {
  return Json{{"function", one.row->name},
              {"instruction", one.row->instruction},
              {"entries", one.table.values.size()},
              {"not_rounded", one.table.not_rounded},
              {"largest_error", one.table.largest_error},
              {"tried", one.table.tried},
              {"by_rule", one.table.by_rule},
              {"problem", one.problem.empty() ? Json() : Json(one.problem)},
              {"file", one.file.empty() ? Json() : Json(one.file)}};
}

std::string headline(const ProbeRequest& request, const std::vector<UnitResult>& units,
                     std::size_t unequal) {
  const std::string device(request.device->fingerprint().value(gpu::fingerprint_names::device));
  const std::string where = device.empty() ? std::string("the simulator") : device;
  if (units.empty()) return fmt::format("Tables of {}.", where);
  if (units.size() == 1) {
    const PropertyCount count = count_properties(units.front().probe);
    return fmt::format("{} of {}: {} of {} properties and {} of {} results differ from the table.",
                       to_string(units.front().probed->unit), where, count.different, count.seen,
                       units.front().probe.different, units.front().probe.rows.size());
  }
  return fmt::format("{} units of {}: {}.", units.size(), where,
                     unequal == 0 ? std::string("all are what the table says")
                                  : fmt::format("{} are not what the table says", unequal));
}

}  // namespace

Answer probe_answer(const ProbeRequest& request, const std::vector<UnitResult>& units,
                    const std::vector<TableResult>& tables) {
  const auto differs = [](const UnitResult& unit) { return !unit.probe.equal(); };
  const auto unequal = static_cast<std::size_t>(std::ranges::count_if(units, differs));
  Answer answer;
  Report& report = answer.report;
  report.schema = "kvsim.probe/1";
  report.command = "probe";
  report.headline = headline(request, units, unequal);
  if (units.size() > 1) report.tables.push_back(unit_table(units));
  Json unit_results = Json::array();
  for (const UnitResult& unit : units) {
    unit_results.push_back(unit_json(unit));
    if (units.size() == 1 || differs(unit)) {
      report.tables.push_back(property_table(unit, units.size() > 1));
    }
  }
  Json table_results = Json::array();
  for (const TableResult& one : tables) table_results.push_back(table_json(one));
  if (!tables.empty()) report.tables.push_back(elementary_table(tables));
  report.input = Json{{"device", request.device->name()},
                      {"rows", request.options.random_rows},
                      {"seed", request.options.seed}};
  Json fingerprint = Json::object();
  for (const auto& [name, value] : request.device->fingerprint().entries) fingerprint[name] = value;
  report.result = Json{{"fingerprint", std::move(fingerprint)},
                       {"unequal", unequal},
                       {"units", std::move(unit_results)},
                       {"tables", std::move(table_results)}};
  const auto broken =
      std::ranges::find_if(tables, [](const TableResult& one) { return !one.problem.empty(); });
  if (unequal > 0) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint =
        fmt::format("not what the table says: {} of {} units", unequal, units.size());
  } else if (broken != tables.end()) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = broken->problem;
  }
  return answer;
}

}  // namespace kvsim
