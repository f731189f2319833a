// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/format_option.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::NamedFormat;
using softfloat::Specials;

// The codes that are not numbers, and what a missing −0 or sign means, in a few words.
std::string specials_text(const Format& format) {
  switch (format.specials) {
    case Specials::ieee:
      return "inf, nan";
    case Specials::nan_only:
      return "nan, no inf";
    case Specials::none:
      return "none";
    case Specials::nan_is_negative_zero:
      return "one nan, no inf, no -0";
    case Specials::exponent_only:
      break;
  }
  return "one nan, no zero, no sign";
}

// A limit as people quote it: 65504, 0.5, 2^-14, 3.3895e+38. (The shortest decimal that reads back,
// such as 6e-08, would look like a wrong value here.)
std::string limit_text(const Format& format, Bits bits) {
  std::string exact = softfloat::to_exact_decimal(format, bits);
  if (exact.size() <= 5) return exact;
  const double value = softfloat::to_double(format, bits);
  int exponent = 0;
  if (std::frexp(value, &exponent) == 0.5) return fmt::format("2^{}", exponent - 1);
  return fmt::format("{:.5g}", value);
}

Cell number_cell(const Format& format, Bits bits) {
  Json value = Json::object();
  value["bits"] = softfloat::to_bits_text(format, bits);
  value["hex_float"] = softfloat::to_hex_float(format, bits);
  value["decimal"] = softfloat::to_decimal(format, bits);
  return {limit_text(format, bits), std::move(value)};
}

std::vector<Cell> format_row(const NamedFormat& row) {
  const Format& format = row.format;
  const Bits min_normal = format.has_zero() ? Bits{1} << format.trailing_bits() : Bits{0};
  const bool has_subnormals = format.has_zero() && format.trailing_bits() > 0;
  Json aliases = Json::array();
  std::string alias_text;
  for (const std::string_view alias : row.aliases) {
    aliases.push_back(alias);
    alias_text += alias_text.empty() ? "" : ", ";
    alias_text += alias;
  }
  std::vector<Cell> cells;
  cells.emplace_back(row.name);
  cells.emplace_back(std::to_string(format.width()), Json(format.width()));
  cells.emplace_back(std::to_string(format.precision), Json(format.precision));
  cells.emplace_back(std::to_string(format.emin()), Json(format.emin()));
  cells.emplace_back(std::to_string(format.emax()), Json(format.emax()));
  cells.push_back(number_cell(format, format.max_finite()));
  cells.push_back(number_cell(format, min_normal));
  cells.push_back(has_subnormals ? number_cell(format, Bits{1}) : Cell("none", Json()));
  cells.emplace_back(specials_text(format));
  cells.emplace_back(std::string(to_string(row.evidence)));
  cells.emplace_back(std::move(alias_text), std::move(aliases));
  cells.emplace_back(row.description);
  cells.emplace_back(row.source);
  return cells;
}

std::vector<Column> format_columns() {
  return {
      {"name", "name", "", Align::left},
      {"width", "width", "bits", Align::right},
      {"precision", "precision", "bits", Align::right},
      {"emin", "emin", "", Align::right},
      {"emax", "emax", "", Align::right},
      {"max", "max", "", Align::right},
      {"min_normal", "min normal", "", Align::right},
      {"min_subnormal", "min subnormal", "", Align::right},
      {"specials", "specials", "", Align::left},
      {"evidence", "evidence", "", Align::left},
      {"aliases", "aliases", "", Align::left},
      {"description", "description", "", Align::left},
      {"source", "source", "", Align::left},
  };
}

// One row as a list of names and values, everything included.
Table transposed(const Table& table) {
  Table out;
  out.show_headings = false;
  out.columns = {{"property", "property", "", Align::left}, {"value", "value", "", Align::left}};
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    const std::string name =
        column.unit.empty() ? column.heading : fmt::format("{} ({})", column.heading, column.unit);
    out.rows.push_back({Cell(name), Cell(table.rows.front()[c].text)});
  }
  return out;
}

// What fits beside each other for people.
constexpr std::array<std::string_view, 10> overview_columns{
    "name", "width",      "precision",     "emin",     "emax",
    "max",  "min_normal", "min_subnormal", "specials", "evidence"};

Result<Answer> run_formats(const ParsedOptions& options) {
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage, fmt::format("{} names are given; at most one is accepted",
                                               options.positionals().size())};
  }
  Table table;
  table.columns = format_columns();
  Answer answer;
  Report& report = answer.report;
  report.schema = "kvsim.formats/1";
  report.command = "formats";
  report.input = Json::object();
  report.result = Json::object();
  if (options.positionals().empty()) {
    report.input["name"] = nullptr;
    for (const NamedFormat& row : softfloat::formats()) table.rows.push_back(format_row(row));
    report.headline = fmt::format(
        "{} formats; a number is significand × 2^(exponent - precision + 1) with emin ≤ exponent ≤ "
        "emax.",
        table.rows.size());
    report.tables.push_back(with_columns(table, overview_columns));
    report.tables.back().notes = {"", "`kvsim formats NAME` adds the aliases and the source."};
  } else {
    const Result<const NamedFormat*> found = format_named("NAME", options.positionals().front());
    if (!found) return found.error();
    const NamedFormat& row = **found;
    report.input["name"] = row.name;
    table.rows.push_back(format_row(row));
    report.headline = fmt::format("{}: {}.", row.name, row.description);
    report.tables.push_back(transposed(table));
  }
  report.result["formats"] = rows_as_json(table);
  return answer;
}

}  // namespace

const Command formats_command{
    .name = "formats",
    .summary = "the number formats: ranges, special values, accepted names, sources",
    .synopsis = "[NAME] [OPTIONS]",
    .description =
        "Lists the number formats, or everything about the one called NAME. Any accepted name will "
        "do,\n"
        "in upper or lower case: fp16, half, F16 and torch.float16 are all binary16.",
    .options = {},
    .examples = "  kvsim formats\n  kvsim formats e4m3 --json",
    .run = run_formats,
};

}  // namespace kvsim
