// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/experiment/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "cli/model_places.h"
#include "cli/printable.h"
#include "model/mapped_file.h"

namespace kvsim {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

Error file_error(const std::string& path, const toml::source_region& where,
                 std::string_view problem) {
  return {ErrorKind::file,
          fmt::format("{}, line {}: {}", printable(path, 4096), where.begin.line, problem)};
}

/// The text of a value on the command line; nothing where it has none.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return text;
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::to_string(*whole);
  if (const auto number = node.value_exact<double>()) return fmt::to_string(*number);
  return std::nullopt;
}

/// Adds the arguments that the entry stands for.
Result<bool> add_arguments(const OptionSpec& row, const toml::node& node, const std::string& path,
                           std::vector<std::string>& arguments) {
  const std::string name(row.name);
  if (row.value_name.empty()) {
    const auto flag = node.value_exact<bool>();
    if (!flag) {
      return file_error(path, node.source(),
                        fmt::format("{} is accepted with true or false", name));
    }
    if (*flag) arguments.push_back(name);
    return true;
  }
  if (const toml::array* list = node.as_array(); list != nullptr && row.repeatable) {
    for (const toml::node& each : *list) {
      const auto text = text_of(each);
      if (!text) {
        return file_error(path, each.source(),
                          fmt::format("{} is accepted with texts or numbers", name));
      }
      arguments.push_back(fmt::format("{}={}", name, *text));
    }
    return true;
  }
  const auto text = text_of(node);
  if (!text) {
    return file_error(path, node.source(),
                      fmt::format("{} is accepted with a text or a number{}", name,
                                  row.repeatable ? ", or a list of them" : ""));
  }
  arguments.push_back(fmt::format("{}={}", name, *text));
  return true;
}

}  // namespace

Result<std::string> plan_path(const std::string& name) {
  if (name.find_first_of("./") != std::string::npos) return name;
  std::vector<std::string> plans;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(plan_folder(), error)) {
    if (entry.path().extension() == ".toml") plans.push_back(entry.path().stem().string());
  }
  std::ranges::sort(plans);
  if (std::ranges::find(plans, name) == plans.end()) {
    const std::vector<std::string_view> words(plans.begin(), plans.end());
    Error unknown = unknown_word("--config", name, words);
    unknown.message += "; so is the path of a file, with a '/' or a '.'";
    return unknown;
  }
  return fmt::format("{}/{}.toml", plan_folder(), name);
}

Result<ParsedOptions> with_plan_file(const ParsedOptions& options, std::span<const OptionSpec> rows,
                                     const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  if (file->bytes().size() > most_bytes) {
    return Error{ErrorKind::file,
                 fmt::format("{}: {} bytes; a plan of at most {} is accepted",
                             printable(path, 4096), file->bytes().size(), most_bytes)};
  }
  const std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return file_error(path, parsed.error().source(), printable(parsed.error().description(), 160));
  }
  std::vector<std::string> arguments;
  for (const auto& [key, node] : parsed.table()) {
    const std::string option = "--" + std::string(key.str());
    const auto row = std::ranges::find(rows, option, &OptionSpec::name);
    if (row == rows.end() || option == "--config") {
      return file_error(
          path, key.source(),
          fmt::format("{} is no option of a plan (kvsim experiment --help)", in_quotes(key.str())));
    }
    const Result<bool> added = add_arguments(*row, node, path, arguments);
    if (!added) return added.error();
  }
  const Result<ParsedOptions> planned = parse_options(rows, arguments);
  if (!planned) return planned.error();
  return options.with_defaults(*planned);
}

}  // namespace kvsim
