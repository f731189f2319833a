// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/output.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cli/build_info.h"
#include "cli/printable.h"

namespace kvsim {
namespace {

std::string heading(const Column& column) {
  return column.unit.empty() ? column.heading : column.heading + " (" + column.unit + ")";
}

std::string pad(std::string_view text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::left ? std::string(text) + blanks : blanks + std::string(text);
}

void strip_trailing_blanks(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string text_table(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = table.show_headings ? display_width(heading(table.columns[c])) : 0;
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c].text));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const auto& cell_text) {
    std::string line;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (c > 0) line += "  ";
      line += pad(cell_text(c), widths[c], table.columns[c].align);
    }
    strip_trailing_blanks(line);
    out += line + "\n";
  };
  if (!table.title.empty()) out += table.title + "\n";
  if (table.show_headings) {
    add_line([&](std::size_t c) { return heading(table.columns[c]); });
    add_line([&](std::size_t c) { return std::string(widths[c], '-'); });
  }
  for (const auto& row : table.rows) add_line([&](std::size_t c) { return row[c].text; });
  for (const std::string& note : table.notes) out += note + "\n";
  return out;
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '<' || c == '*' || c == '_' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_table(const Table& table) {
  std::string out;
  if (!table.title.empty()) out += "**" + markdown_cell(table.title) + "**\n\n";
  out += "|";
  for (const Column& column : table.columns) out += " " + markdown_cell(heading(column)) + " |";
  out += "\n|";
  for (const Column& column : table.columns) out += column.align == Align::left ? "---|" : "--:|";
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const Cell& cell : row) out += " " + markdown_cell(cell.text) + " |";
    out += "\n";
  }
  for (const std::string& note : table.notes) out += "\n" + markdown_cell(note) + "\n";
  return out;
}

std::string json_text(const Report& report) {
  Json out;
  out["schema"] = report.schema;
  out["command"] = report.command;
  out["version"] = build_info::version();
  out["input"] = report.input;
  out["result"] = report.result;
  // Bytes that are not UTF-8 (they can only come from a file name) become U+FFFD.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string render(const Report& report, OutputForm form) {
  if (form == OutputForm::json) return json_text(report);
  const bool markdown = form == OutputForm::markdown;
  std::string out;
  if (!report.headline.empty()) {
    out += (markdown ? markdown_cell(report.headline) : report.headline) + "\n";
  }
  for (const Table& table : report.tables) {
    if (!out.empty()) out += "\n";
    out += markdown ? markdown_table(table) : text_table(table);
  }
  return out;
}

Json rows_as_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) object[table.columns[c].key] = row[c].value;
    rows.push_back(std::move(object));
  }
  return rows;
}

Table with_columns(const Table& table, std::span<const std::string_view> keys) {
  Table out{table.title, {}, {}, table.notes, table.show_headings};
  out.rows.resize(table.rows.size());
  for (const std::string_view key : keys) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].key != key) continue;
      out.columns.push_back(table.columns[c]);
      for (std::size_t r = 0; r < table.rows.size(); ++r) out.rows[r].push_back(table.rows[r][c]);
    }
  }
  return out;
}

Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace kvsim
