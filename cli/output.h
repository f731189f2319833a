// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim {

/// JSON whose members keep the order in which they were added.
using Json = nlohmann::ordered_json;

/// How a column's cells stand under its heading.
enum class Align : std::uint8_t { left, right };

/// One column of a table.
struct Column {
  std::string key;      ///< member name in JSON: "max_ulp"
  std::string heading;  ///< for people: "max error"
  std::string unit;     ///< printed behind the heading in brackets: "ulp"; may be empty
  Align align = Align::left;
};

/// One cell: what people see, and the value that JSON carries.
struct Cell {
  std::string text;
  Json value;

  Cell(std::string shown) : text(shown), value(std::move(shown)) {}  // NOLINT: implicit on purpose
  Cell(const char* shown) : Cell(std::string(shown)) {}              // NOLINT: implicit on purpose
  Cell(std::string_view shown) : Cell(std::string(shown)) {}         // NOLINT: implicit on purpose
  Cell(std::string shown, Json carried) : text(std::move(shown)), value(std::move(carried)) {}
};

/// One table; every row has as many cells as there are columns.
struct Table {
  std::string title;  ///< one line above; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes;  ///< lines below; may be empty
  bool show_headings = true;       ///< false for a list of names and values
};

/// What a command answers, in every output form at once.
struct Report {
  std::string schema;         ///< "kvsim.eval/1"
  std::string command;        ///< "eval add"
  std::string headline;       ///< one sentence that says what the tables mean; may be empty
  std::vector<Table> tables;  ///< for text and Markdown
  Json input;                 ///< everything that determines the result
  Json result;
};

enum class OutputForm : std::uint8_t { text, markdown, json };

/// The report as aligned text, Markdown or one JSON object, ending in a newline. Deterministic.
[[nodiscard]] std::string render(const Report& report, OutputForm form);

/// A table's rows as a JSON array of objects, one member for each column.
[[nodiscard]] Json rows_as_json(const Table& table);

/// The same table with only these columns, in this order; what is not a key of it is left out.
[[nodiscard]] Table with_columns(const Table& table, std::span<const std::string_view> keys);

/// A binary64 for JSON: a number, or "inf", "-inf" or "nan".
[[nodiscard]] Json json_number(double value);

}  // namespace kvsim
