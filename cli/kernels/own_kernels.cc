// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/own_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "cli/kernels/entry.h"
#include "cli/kernels/own_kernel_rows.h"
#include "cli/printable.h"
#include "cli/sink.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = std::size_t{64} << 20;

std::string absolute_path(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? std::string(value) : std::string();
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

Result<bool> check_name(const std::vector<OwnKernel>& kernels, const std::string& path,
                        const std::string& name) {
  if (!is_own_kernel_name(name)) {
    return Error{ErrorKind::usage,
                 fmt::format("--save {}; accepted: {}", in_quotes(name), accepted_own_names)};
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
  return parse_own_kernels(*text, path);
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
  *text += own_kernel_text(kernel);
  // What is written must be readable: nothing replaces a good file by a bad one.
  if (const auto again = parse_own_kernels(*text, path); !again) return again.error();
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
