// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/own_kernel_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cli/output.h"
#include "cli/printable.h"
#include "sim/attention/kernel.h"
#include "sim/order.h"
#include "softfloat/formats.h"

// Header-only, and errors as values.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace kvsim {
namespace {

constexpr std::size_t longest_name = 64;
constexpr std::int64_t largest_size = std::int64_t{1} << 20;

/// Reads the members of one row; remembers the first thing that is wrong.
class RowReader {
 public:
  RowReader(const toml::table& row, std::string_view path) : row_(row), path_(path) {}

  std::string text(std::string_view key) {
    const auto value = row_[key].value_exact<std::string>();
    if (!value) wrong(key, "a text");
    return value.value_or("");
  }
  std::int64_t size(std::string_view key, std::int64_t most = largest_size) {
    const auto value = row_[key].value_exact<std::int64_t>();
    if (!value || *value < 1 || *value > most) wrong(key, fmt::format("1 to {}", most));
    return value.value_or(1);
  }
  std::int64_t divisor(std::string_view key, std::int64_t heads) {
    const std::int64_t value = size(key);
    if (heads % value == 0) return value;
    wrong(key, "a divisor of heads");
    return heads;
  }
  softfloat::Format format(std::string_view key) {
    const softfloat::NamedFormat* found = softfloat::find_format(text(key));
    if (found == nullptr) wrong(key, "a format");
    return found == nullptr ? softfloat::binary32 : found->format;
  }
  std::string date(std::string_view key) {
    const auto value = row_[key].value_exact<toml::date>();
    if (!value) wrong(key, "a date, as 2026-11-30");
    return value ? fmt::format("{:04}-{:02}-{:02}", value->year, value->month, value->day) : "";
  }
  std::string order(std::string_view key) {
    const auto found = parse_order(text(key));
    if (!found) wrong(key, "an order");
    return found ? to_string(*found) : std::string();
  }
  Product product(std::string_view key) {
    const auto found = parse_product(text(key));
    if (!found) wrong(key, "fused, rounded or exact");
    return found ? *found : Product::fused;
  }
  std::string name(std::string_view key) {
    std::string found = text(key);
    if (!is_own_kernel_name(found)) wrong(key, accepted_own_names);
    return found;
  }
  std::string attention_kernel(std::string_view key) {
    const std::string found = text(key);
    if (find_attention_kernel(found) == nullptr) wrong(key, "a kernel of attention");
    return found;
  }
  /// KEY=VALUE each.
  std::map<std::string, std::string> attributes(std::string_view key) {
    std::map<std::string, std::string> all;
    for (const std::string& one : texts(key)) {
      const std::size_t equals = one.find('=');
      if (equals == 0 || equals == std::string::npos) wrong(key, "KEY=VALUE");
      all[one.substr(0, equals)] = equals == std::string::npos ? "" : one.substr(equals + 1);
    }
    return all;
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> all;
    const toml::array* values = row_[key].as_array();
    if (values == nullptr) return all;
    all.reserve(values->size());
    for (const toml::node& value : *values) {
      if (!value.is_string()) wrong(key, "texts");
      all.push_back(value.value_or(std::string()));
    }
    return all;
  }
  std::vector<std::pair<std::string, std::string>> members(std::string_view key) {
    std::vector<std::pair<std::string, std::string>> all;
    const toml::table* table = row_[key].as_table();
    if (table == nullptr) wrong(key, "a table of texts");
    if (table == nullptr) return all;
    all.reserve(table->size());
    for (const auto& [name, value] : *table) {
      if (!value.is_string()) wrong(key, "a table of texts");
      all.emplace_back(std::string(name.str()), value.value_or(std::string()));
    }
    return all;
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void wrong(std::string_view key, std::string_view accepted) {
    if (error_) return;
    const toml::node* node = row_.get(key);
    const auto line = (node == nullptr ? row_.source() : node->source()).begin.line;
    error_ =
        Error{ErrorKind::usage,
              fmt::format("{}, line {}: {} of a kernel is {}; accepted: {}", in_quotes(path_), line,
                          key, node == nullptr ? "missing" : "something else", accepted)};
  }

  const toml::table& row_;
  std::string_view path_;
  std::optional<Error> error_;
};

OwnAttention read_attention(RowReader& row) {
  OwnAttention layer;
  layer.kernel = row.attention_kernel("kernel");
  layer.shape.query_heads = row.size("heads");
  layer.shape.kv_heads = row.divisor("kv_heads", layer.shape.query_heads);
  layer.shape.head_dim = row.size("head_dim");
  layer.shape.query_len = row.size("q_len");
  layer.shape.kv_len = row.size("kv_len");
  layer.attributes = row.attributes("attributes");
  layer.walk = row.text("walk");
  return layer;
}

void read_sum(RowReader& row, OwnKernel& kernel) {
  kernel.rows = row.size("m");
  kernel.outputs = row.size("n");
  kernel.terms = row.size("k");
  kernel.order = row.order("order");
  kernel.product = row.product("product");
  kernel.accumulator = row.format("accumulator");
}

Result<OwnKernel> read_row(const toml::table& table, const std::string& path) {
  RowReader row(table, path);
  OwnKernel kernel;
  kernel.name = row.name("name");
  kernel.operation = row.text("operation");
  kernel.backend = row.text("backend");
  kernel.device = row.text("device");
  kernel.date = row.date("date");
  kernel.key = row.text("key");
  if (kernel.operation == attention_operation) {
    kernel.attention = read_attention(row);
  } else {
    read_sum(row, kernel);
  }
  kernel.storage = row.format("storage");
  kernel.output = row.format("output");
  kernel.outputs_checked = row.size("outputs_checked", std::int64_t{1} << 40);
  kernel.tree_sha256 = row.text("tree_sha256");
  kernel.exceptions = row.texts("exceptions");
  kernel.fingerprint = row.members("fingerprint");
  if (const auto& error = row.error()) return *error;
  return kernel;
}

/// A TOML string: what JSON escapes is escaped alike.
std::string toml_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string toml_text(const softfloat::Format& format) {
  return toml_text(softfloat::format_name(format));
}

/// A key as it stands where it can.
std::string key_text(std::string_view key) {
  const bool bare = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
  return bare ? std::string(key) : toml_text(key);
}

}  // namespace

bool is_own_kernel_name(std::string_view text) {
  const auto begins = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= longest_name && begins(text.front()) &&
         std::ranges::all_of(text,
                             [&](char c) { return begins(c) || c == '-' || c == '_' || c == '.'; });
}

Result<std::vector<OwnKernel>> parse_own_kernels(const std::string& text, const std::string& path) {
  const auto at_line = [&](std::uint32_t line, std::string_view what) {
    return Error{ErrorKind::usage, fmt::format("{}, line {}: {}", in_quotes(path), line, what)};
  };
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return at_line(parsed.error().source().begin.line,
                   printable(parsed.error().description(), 160));
  }
  std::vector<OwnKernel> kernels;
  const toml::node* node = parsed.table().get("kernel");
  if (node == nullptr) return kernels;
  const toml::array* rows = node->as_array();
  if (rows == nullptr) return at_line(node->source().begin.line, "kernel is no list of tables");
  kernels.reserve(rows->size());
  for (const toml::node& row : *rows) {
    const toml::table* table = row.as_table();
    if (table == nullptr) return at_line(row.source().begin.line, "kernel is no list of tables");
    Result<OwnKernel> kernel = read_row(*table, path);
    if (!kernel) return kernel.error();
    const bool known = std::ranges::any_of(
        kernels, [&](const OwnKernel& other) { return other.name == kernel->name; });
    if (known) {
      return at_line(table->source().begin.line,
                     fmt::format("a second kernel is called {}", kernel->name));
    }
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

std::string own_kernel_text(const OwnKernel& kernel) {
  std::vector<std::string> exceptions;
  exceptions.reserve(kernel.exceptions.size());
  for (const std::string& one : kernel.exceptions) exceptions.push_back(toml_text(one));
  std::string text = "[[kernel]]\n";
  const auto add = [&](std::string_view key, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "{} = {}\n", key_text(key), value);
  };
  add("name", toml_text(kernel.name));
  add("operation", toml_text(kernel.operation));
  add("backend", toml_text(kernel.backend));
  add("device", toml_text(kernel.device));
  add("date", kernel.date);
  add("key", toml_text(kernel.key));
  if (const auto& layer = kernel.attention) {
    add("kernel", toml_text(layer->kernel));
    add("heads", fmt::to_string(layer->shape.query_heads));
    add("kv_heads", fmt::to_string(layer->shape.kv_heads));
    add("head_dim", fmt::to_string(layer->shape.head_dim));
    add("q_len", fmt::to_string(layer->shape.query_len));
    add("kv_len", fmt::to_string(layer->shape.kv_len));
    std::vector<std::string> attributes;
    attributes.reserve(layer->attributes.size());
    for (const auto& [name, value] : layer->attributes) {
      attributes.push_back(toml_text(fmt::format("{}={}", name, value)));
    }
    add("attributes", fmt::format("[{}]", fmt::join(attributes, ", ")));
    add("walk", toml_text(layer->walk));
  } else {
    add("m", fmt::to_string(kernel.rows));
    add("n", fmt::to_string(kernel.outputs));
    add("k", fmt::to_string(kernel.terms));
    add("order", toml_text(kernel.order));
    add("product", toml_text(to_string(kernel.product)));
    add("accumulator", toml_text(kernel.accumulator));
  }
  add("storage", toml_text(kernel.storage));
  add("output", toml_text(kernel.output));
  add("outputs_checked", fmt::to_string(kernel.outputs_checked));
  add("tree_sha256", toml_text(kernel.tree_sha256));
  add("exceptions", fmt::format("[{}]", fmt::join(exceptions, ", ")));
  text += "[kernel.fingerprint]\n";
  for (const auto& [name, value] : kernel.fingerprint) add(name, toml_text(value));
  return text;
}

}  // namespace kvsim
