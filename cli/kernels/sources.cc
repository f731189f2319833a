// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim {
namespace {

std::size_t column_named(const Table& table, std::string_view key) {
  const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                   [&](const Column& each) { return each.key == key; });
  return static_cast<std::size_t>(column - table.columns.begin());
}

}  // namespace

void number_sources(Table& table) {
  const std::size_t column = column_named(table, "source");
  std::vector<std::string> sources;
  for (std::vector<Cell>& row : table.rows) {
    const auto found = std::find(sources.begin(), sources.end(), row[column].text);
    const auto number = static_cast<std::size_t>(found - sources.begin()) + 1;
    if (found == sources.end()) sources.push_back(row[column].text);
    row[column].text = fmt::format("[{}]", number);
  }
  table.notes.emplace_back("");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    table.notes.push_back(fmt::format("[{}] {}", i + 1, sources[i]));
  }
}

}  // namespace kvsim
