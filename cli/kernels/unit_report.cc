// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/unit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/kernels/sources.h"
#include "softfloat/evidence.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

/// The third part of a unit's name: the input, with its scales.
std::string input_name(const MatrixUnit& unit) {
  const std::string_view name = unit.name;
  const std::size_t last = name.rfind('.');
  const std::size_t before = name.rfind('.', last - 1);
  return std::string(name.substr(before + 1, last - before - 1));
}

bool rounds_down(const MatrixUnit& unit) {
  return unit.operation == UnitOperation::tr_fdpa || unit.operation == UnitOperation::gtr_fdpa;
}

/// True where F means something.
bool truncates(const MatrixUnit& unit) {
  return rounds_down(unit) || unit.operation == UnitOperation::t_fdpa ||
         unit.operation == UnitOperation::st_fdpa || unit.operation == UnitOperation::gst_fdpa;
}

std::string_view order_text(const MatrixUnit& unit) {
  switch (unit.order) {
    case OperandOrder::odd_before_even:
      return "odd k before even k";
    case OperandOrder::pairs_of_four:
      return "block 0: k mod 4 = 0, 1; block 1: k mod 4 = 2, 3";
    case OperandOrder::in_turn:
      break;
  }
  return "in turn";
}

std::string_view subnormals_text(const MatrixUnit& unit) {
  if (unit.operation == UnitOperation::ftz_add_mul) return "operands and results flushed";
  switch (unit.mode.subnormals) {
    case softfloat::Subnormals::flush_both:
      return "operands and results flushed";
    case softfloat::Subnormals::flush_results:
      return "results flushed";
    case softfloat::Subnormals::flush_inputs:
      return "operands flushed";
    case softfloat::Subnormals::keep:
      break;
  }
  return "kept";
}

std::string scale_text(const MatrixUnit& unit) {
  return unit.scale_block == 0
             ? "none"
             : fmt::format("{} for {} elements", unit_format_name(unit.scale), unit.scale_block);
}

Json options_json(const MatrixUnit& unit) {
  Json options = Json::array();
  for (const UnitOption& option : unit.options) {
    Json accepted = Json::array();
    for (const int value : option.accepted) {
      accepted.push_back(parameter_text(option.parameter, value));
    }
    Json one = Json::object();
    one["name"] = to_string(option.parameter);
    one["accepted"] = std::move(accepted);
    one["value"] = parameter_text(option.parameter, parameter_value(unit, option.parameter));
    one["reason"] = option.reason;
    options.push_back(std::move(one));
  }
  return options;
}

std::string open_names(const MatrixUnit& unit) {
  std::string names;
  for (const UnitOption& option : unit.options) {
    if (!names.empty()) names += ", ";
    names += to_string(option.parameter);
  }
  return names.empty() ? "-" : names;
}

Cell number_or_none(bool has, int value) {
  return has ? Cell(fmt::format("{}", value), Json(value)) : Cell("-", Json());
}

std::vector<Column> unit_columns() {
  return {
      {"name", "name", "", Align::left},
      {"operation", "operation", "", Align::left},
      {"input", "input", "", Align::left},
      {"output", "output", "", Align::left},
      {"fan_in", "L", "", Align::right},
      {"fraction_bits", "F", "", Align::right},
      {"final_bits", "F2", "", Align::right},
      {"zero_exponent", "e zero", "", Align::right},
      {"conversion", "rounding", "", Align::left},
      {"chain", "chain", "", Align::left},
      {"open", "open", "", Align::left},
      {"evidence", "evidence", "", Align::left},
      {"source", "source", "", Align::left},
      {"instruction", "instruction", "", Align::left},
      {"blocks", "blocks", "", Align::right},
      {"order", "order of k", "", Align::left},
      {"addend", "addend", "", Align::left},
      {"accumulators", "accumulators", "", Align::right},
      {"scale", "scales", "", Align::left},
      {"subnormals", "subnormals", "", Align::left},
      {"nan", "nan", "", Align::left},
      {"aliases", "aliases", "", Align::left},
      {"options", "options", "", Align::left},
      {"note", "note", "", Align::left},
  };
}

std::vector<Cell> unit_row(const MatrixUnit& unit) {
  Json aliases = Json::array();
  std::string alias_text;
  for (const std::string& alias : unit_aliases(unit)) {
    aliases.push_back(alias);
    alias_text += alias_text.empty() ? alias : ", " + alias;
  }
  std::string option_text;
  for (const UnitOption& option : unit.options) {
    if (!option_text.empty()) option_text += "; ";
    option_text += fmt::format("{}=", to_string(option.parameter));
    for (std::size_t i = 0; i < option.accepted.size(); ++i) {
      option_text += fmt::format("{}{}", i == 0 ? "" : " or ",
                                 parameter_text(option.parameter, option.accepted[i]));
    }
    option_text += fmt::format(": {}", option.reason);
  }
  const std::string nan = softfloat::to_bits_text(unit.output, unit.nan_code);
  const bool propagates = unit.nan_rule == NanRule::propagate;
  std::vector<Cell> cells;
  cells.emplace_back(to_string(unit));
  cells.emplace_back(to_string(unit.operation));
  cells.emplace_back(input_name(unit));
  cells.emplace_back(unit_format_name(unit.output));
  cells.push_back(number_or_none(true, unit.fan_in));
  cells.push_back(number_or_none(truncates(unit), unit.fraction_bits));
  cells.push_back(number_or_none(rounds_down(unit), unit.final_bits));
  cells.push_back(number_or_none(truncates(unit) && !rounds_down(unit), unit.zero_exponent));
  cells.emplace_back(to_string(unit.conversion));
  cells.emplace_back(fmt::format("{} × {}", unit.blocks, unit.fan_in));
  cells.emplace_back(open_names(unit));
  cells.emplace_back(to_string(unit.evidence));
  cells.emplace_back(unit.source);
  cells.emplace_back(unit.instruction);
  cells.push_back(number_or_none(true, unit.blocks));
  cells.emplace_back(order_text(unit));
  cells.emplace_back(unit.addend == Addend::first ? "first" : "last, by one addition");
  cells.push_back(number_or_none(true, unit.accumulators));
  cells.emplace_back(scale_text(unit));
  cells.emplace_back(subnormals_text(unit));
  cells.emplace_back(propagates ? fmt::format("the first operand's, or {}", nan) : nan);
  cells.emplace_back(alias_text.empty() ? "-" : alias_text, std::move(aliases));
  cells.emplace_back(option_text.empty() ? "-" : option_text, options_json(unit));
  cells.emplace_back(unit.note.empty() ? "-" : std::string(unit.note),
                     unit.note.empty() ? Json() : Json(unit.note));
  return cells;
}

constexpr std::string_view terms_note =
    "operation: FDPA is a fused dot product and add, d = c + Σ a[k]·b[k]; T truncates its terms, E "
    "is "
    "exact; docs/units.md has all.";
constexpr std::string_view parts_note =
    "L: products of a block. F: fraction bits kept below the largest exponent. e zero: the "
    "exponent "
    "of a zero term.";
constexpr std::string_view rounding_note =
    "rounding: of a block's result, RZ toward zero or RNE to nearest, ties to even; E8M13 is "
    "binary32 with 13 fraction bits.";

constexpr std::string_view chain_note =
    "chain: blocks × L of one instruction. open: parameters that the sources leave open; `kvsim "
    "kernels --units NAME` tells more.";

constexpr std::array<std::string_view, 12> overview_columns{
    "name",          "operation",  "input", "output", "fan_in",   "fraction_bits",
    "zero_exponent", "conversion", "chain", "open",   "evidence", "source"};

Report report_of(std::span<const MatrixUnit> units) {
  Report report;
  report.schema = "kvsim.kernels/1";
  report.command = "kernels";
  report.input = Json::object();
  report.input["units"] = true;
  report.input["name"] = nullptr;
  report.input["operator"] = nullptr;
  report.input["device"] = nullptr;
  report.result = Json::object();
  Table table;
  table.columns = unit_columns();
  for (const MatrixUnit& unit : units) table.rows.push_back(unit_row(unit));
  report.result["units"] = rows_as_json(table);
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace

Report units_report() {
  Report report = report_of(matrix_units());
  Table& table = report.tables.front();
  std::size_t measured = 0;
  for (const MatrixUnit& unit : matrix_units()) {
    measured += unit.evidence == softfloat::Evidence::measured ? 1 : 0;
  }
  report.headline =
      fmt::format("{} matrix units; {} of them repeat the hardware's own output bit for bit.",
                  table.rows.size(), measured);
  table = with_columns(table, overview_columns);
  number_sources(table);
  table.notes.insert(table.notes.begin(), {"", std::string(terms_note), std::string(parts_note),
                                           std::string(rounding_note), std::string(chain_note)});
  return report;
}

Report unit_report(const MatrixUnit& unit) {
  Report report = report_of(std::span(&unit, 1));
  const std::string name = to_string(unit);
  report.input["name"] = name;
  report.headline =
      fmt::format("{}: {}, by {}.", name, to_string(unit.operation), unit.instruction);
  Table& table = report.tables.front();
  Table facts;
  facts.show_headings = false;
  facts.columns = {{"property", "property", "", Align::left}, {"value", "value", "", Align::left}};
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    facts.rows.push_back({Cell(table.columns[c].heading), Cell(table.rows.front()[c].text)});
  }
  facts.notes = {"", std::string(terms_note), std::string(parts_note),
                 "F2: fraction bits of the sum, which is rounded down to them.",
                 std::string(rounding_note)};
  table = std::move(facts);
  return report;
}

}  // namespace kvsim
