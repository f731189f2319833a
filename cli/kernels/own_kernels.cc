// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/own_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "cli/kernels/entry.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/sink.h"
#include "sim/order.h"
#include "softfloat/formats.h"

// Header-only, and errors as values.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace kvsim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = std::size_t{64} << 20;
constexpr std::size_t longest_name = 64;
constexpr std::int64_t largest_size = std::int64_t{1} << 20;

std::string absolute_path(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? std::string(value) : std::string();
}

constexpr std::string_view accepted_names =
    "small letters, digits, '-', '_' and '.', at most 64, of which the first is a letter or a "
    "digit";

bool is_name(std::string_view text) {
  const auto begins = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= longest_name && begins(text.front()) &&
         std::ranges::all_of(text,
                             [&](char c) { return begins(c) || c == '-' || c == '_' || c == '.'; });
}

/// The text of a file; empty if there is none.
Result<std::string> read_text(const std::string& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) return std::string();
  const auto cannot = [&](std::string_view why) {
    return Error{ErrorKind::file, fmt::format("cannot read {}: {}", in_quotes(path), why)};
  };
  if (failure) return cannot(failure.message());
  if (!fs::is_regular_file(status)) return cannot("it is no regular file");
  if (fs::file_size(path, failure) > largest_file || failure) return cannot("it is too large");
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return cannot("reading failed");
  return text;
}

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
    if (!is_name(found)) wrong(key, accepted_names);
    return found;
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

Result<OwnKernel> read_row(const toml::table& table, const std::string& path) {
  RowReader row(table, path);
  OwnKernel kernel;
  kernel.name = row.name("name");
  kernel.operation = row.text("operation");
  kernel.backend = row.text("backend");
  kernel.device = row.text("device");
  kernel.date = row.date("date");
  kernel.key = row.text("key");
  kernel.rows = row.size("m");
  kernel.outputs = row.size("n");
  kernel.terms = row.size("k");
  kernel.order = row.order("order");
  kernel.product = row.product("product");
  kernel.storage = row.format("storage");
  kernel.accumulator = row.format("accumulator");
  kernel.output = row.format("output");
  kernel.outputs_checked = row.size("outputs_checked", std::int64_t{1} << 40);
  kernel.tree_sha256 = row.text("tree_sha256");
  kernel.exceptions = row.texts("exceptions");
  kernel.fingerprint = row.members("fingerprint");
  if (const auto& error = row.error()) return *error;
  return kernel;
}

Result<std::vector<OwnKernel>> parse(const std::string& text, const std::string& path) {
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

/// One row as TOML, with its heading.
std::string row_text(const OwnKernel& kernel) {
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
  add("m", fmt::to_string(kernel.rows));
  add("n", fmt::to_string(kernel.outputs));
  add("k", fmt::to_string(kernel.terms));
  add("order", toml_text(kernel.order));
  add("product", toml_text(to_string(kernel.product)));
  add("storage", toml_text(kernel.storage));
  add("accumulator", toml_text(kernel.accumulator));
  add("output", toml_text(kernel.output));
  add("outputs_checked", fmt::to_string(kernel.outputs_checked));
  add("tree_sha256", toml_text(kernel.tree_sha256));
  add("exceptions", fmt::format("[{}]", fmt::join(exceptions, ", ")));
  text += "[kernel.fingerprint]\n";
  for (const auto& [name, value] : kernel.fingerprint) add(name, toml_text(value));
  return text;
}

Result<bool> check_name(const std::vector<OwnKernel>& kernels, const std::string& path,
                        const std::string& name) {
  if (!is_name(name)) {
    return Error{ErrorKind::usage,
                 fmt::format("--save {}; accepted: {}", in_quotes(name), accepted_names)};
  }
  const auto taken = [&](std::string_view where) {
    return Error{ErrorKind::usage, fmt::format("--save {}: {} has a kernel of that name; accepted: "
                                               "another name",
                                               in_quotes(name), where)};
  };
  for (const OwnKernel& kernel : kernels) {
    if (kernel.name == name) return taken(in_quotes(path));
  }
  for (const KernelEntry& entry : kernel_entries()) {
    if (entry.name == name) return taken("kvsim");
  }
  return true;
}

}  // namespace

std::string own_kernels_path() {
  if (const std::string own = absolute_path("XDG_CONFIG_HOME"); !own.empty()) {
    return own + "/kvsim/kernels.toml";
  }
  if (const std::string home = absolute_path("HOME"); !home.empty()) {
    return home + "/.config/kvsim/kernels.toml";
  }
  return {};
}

Result<std::vector<OwnKernel>> read_own_kernels(const std::string& path) {
  if (path.empty()) return std::vector<OwnKernel>();
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  return parse(*text, path);
}

Result<bool> check_own_kernel_name(const std::string& path, const std::string& name) {
  if (path.empty()) {
    return Error{ErrorKind::file,
                 "--save: neither XDG_CONFIG_HOME nor HOME names a folder by an "
                 "absolute path"};
  }
  const Result<std::vector<OwnKernel>> kernels = read_own_kernels(path);
  if (!kernels) return kernels.error();
  return check_name(*kernels, path, name);
}

Result<bool> add_own_kernel(const std::string& path, const OwnKernel& kernel) {
  if (const auto fits = check_own_kernel_name(path, kernel.name); !fits) return fits.error();
  Result<std::string> text = read_text(path);
  if (!text) return text.error();
  if (!text->empty() && text->back() != '\n') *text += '\n';
  if (!text->empty()) *text += '\n';
  *text += row_text(kernel);
  // What is written must be readable: nothing replaces a good file by a bad one.
  if (const auto again = parse(*text, path); !again) return again.error();
  std::error_code failure;
  const fs::path folder = fs::path(path).parent_path();
  fs::create_directories(folder, failure);
  if (failure) {
    return Error{ErrorKind::file, fmt::format("cannot make the folder {}: {}",
                                              in_quotes(folder.string()), failure.message())};
  }
  const auto written = write_output_file(path, *text);
  if (!written) return written.error();
  return true;
}

std::string today() {
  const std::chrono::year_month_day day(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

}  // namespace kvsim
