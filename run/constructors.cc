// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/constructors.h"

#include <array>
#include <cstddef>

namespace kvsim {
namespace {

constexpr std::array<ConstructorRow, 8> rows{{
    {CacheConstructor::live, "live", "live", 0},
    {CacheConstructor::token_wise, "token-wise", "token-wise", 0},
    {CacheConstructor::all_token_wise, "all-token-wise", "all-token-wise", 0},
    {CacheConstructor::one_shot, "one-shot", "one-shot", 0},
    {CacheConstructor::chunked, "chunked", "chunked(c)", 1},
    {CacheConstructor::aligned_chunk, "aligned-chunk", "aligned-chunk(c)", 1},
    {CacheConstructor::prefix_hit, "prefix-hit", "prefix-hit(n,b)", 2},
    {CacheConstructor::off, "off", "off", 0},
}};

constexpr std::array<std::string_view, rows.size() + 1> names = [] {
  std::array<std::string_view, rows.size() + 1> list{};
  for (std::size_t index = 0; index < rows.size(); ++index) list[index] = rows[index].name;
  list[rows.size()] = "on";
  return list;
}();

}  // namespace

const ConstructorRow* find_constructor(std::string_view name) {
  if (name == "on") return rows.data();
  for (const ConstructorRow& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const ConstructorRow& constructor_row(CacheConstructor constructor) {
  return rows.at(static_cast<std::size_t>(constructor));
}

std::span<const std::string_view> constructor_names() { return names; }

std::string constructor_forms() {
  std::string text = "on";
  for (const ConstructorRow& row : rows) text.append(", ").append(row.form);
  return text;
}

}  // namespace kvsim
