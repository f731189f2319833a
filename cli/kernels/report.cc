// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/kernels/sources.h"
#include "cli/options.h"
#include "cli/printable.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

/// Without blanks and capital letters.
std::string folded(std::string_view text) {
  std::string out(text);
  std::erase(out, ' ');
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Error unknown_name(std::string_view name, const KernelFilter& filter,
                   const std::vector<KernelEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const KernelEntry& entry : entries) names.push_back(entry.name);
  const std::string_view near = softfloat::nearest(name, names);
  const std::string list = fmt::format(
      "kvsim kernels{}{}", filter.operator_name ? " --operator " + *filter.operator_name : "",
      filter.device ? " --device " + printable(*filter.device) : "");
  std::string message =
      fmt::format("no kernel is called {}; accepted are the names of {}, such as {}",
                  in_quotes(name), list, entries.front().name);
  if (!near.empty()) message += fmt::format("; did you mean {}?", near);
  return {ErrorKind::usage, std::move(message)};
}

Error unknown_device(std::string_view device, const std::vector<KernelEntry>& entries) {
  std::vector<std::string> devices;
  devices.reserve(entries.size());
  for (const KernelEntry& entry : entries) {
    devices.push_back(folded(entry.device.substr(0, entry.device.find('('))));
  }
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  const std::vector<std::string_view> names(devices.begin(), devices.end());
  return unknown_word("--device", device, names);
}

Json parameters_json(const KernelParameters& parameters) {
  Json out = Json::object();
  for (const auto& [name, value] : parameters) out[name] = value;
  return out;
}

Json entry_json(const KernelEntry& entry) {
  Json out = Json::object();
  out["name"] = entry.name;
  out["operator"] = entry.operator_name;
  out["device"] = entry.device;
  out["source"] = entry.source;
  out["date"] = entry.date.empty() ? Json() : Json(entry.date);
  out["evidence"] = softfloat::to_string(entry.evidence);
  out["note"] = entry.note.empty() ? Json() : Json(entry.note);
  out["parameters"] = parameters_json(entry.parameters);
  return out;
}

std::string source_text(const KernelEntry& entry) {
  const bool tells_date = entry.source.find(entry.date) != std::string_view::npos;
  return tells_date ? std::string(entry.source) : fmt::format("{} ({})", entry.source, entry.date);
}

Table list_table(const std::vector<KernelEntry>& entries) {
  Table table;
  table.columns = {{"name", "name", "", Align::left},
                   {"operator", "operator", "", Align::left},
                   {"device", "device", "", Align::left},
                   {"evidence", "evidence", "", Align::left},
                   {"source", "source", "", Align::left}};
  for (const KernelEntry& entry : entries) {
    table.rows.push_back({Cell(entry.name), Cell(entry.operator_name), Cell(entry.device),
                          Cell(softfloat::to_string(entry.evidence)), Cell(source_text(entry))});
  }
  number_sources(table);
  return table;
}

/// Everything about one kernel.
Table entry_table(const KernelEntry& entry) {
  Table table;
  table.title = fmt::format("{} ({})", entry.name, entry.operator_name);
  table.show_headings = false;
  table.columns = {{"property", "property", "", Align::left}, {"value", "value", "", Align::left}};
  const auto add = [&](std::string_view name, std::string_view value) {
    table.rows.push_back({Cell(name), Cell(value)});
  };
  add("device", entry.device);
  for (const auto& [name, value] : entry.parameters) add(name, value);
  add("evidence", softfloat::to_string(entry.evidence));
  add("source", source_text(entry));
  if (!entry.note.empty()) add("note", entry.note);
  return table;
}

/// What --operator takes.
std::vector<std::string_view> operators_of(std::span<const OwnKernel> own) {
  const auto names = kernel_operators();
  std::vector<std::string_view> known(names.begin(), names.end());
  for (const OwnKernel& kernel : own) {
    if (std::ranges::find(known, kernel.operation) == known.end()) {
      known.emplace_back(kernel.operation);
    }
  }
  return known;
}

}  // namespace

Result<Report> kernels_report(const KernelFilter& filter, std::span<const OwnKernel> own) {
  std::vector<KernelEntry> entries = kernel_entries();
  for (KernelEntry& entry : own_entries(own)) entries.push_back(std::move(entry));
  if (filter.operator_name) {
    const std::vector<std::string_view> known = operators_of(own);
    if (std::ranges::find(known, *filter.operator_name) == known.end()) {
      return unknown_word("--operator", *filter.operator_name, known);
    }
    std::erase_if(entries, [&](const KernelEntry& entry) {
      return entry.operator_name.substr(0, entry.operator_name.find(' ')) != *filter.operator_name;
    });
  }
  if (filter.device) {
    const std::string device = folded(*filter.device);
    std::vector<KernelEntry> found;
    std::ranges::copy_if(entries, std::back_inserter(found), [&](const KernelEntry& entry) {
      return !device.empty() && folded(entry.device).find(device) != std::string::npos;
    });
    if (found.empty()) return unknown_device(*filter.device, entries);
    entries = std::move(found);
  }
  if (filter.name) {
    std::vector<KernelEntry> found;
    std::ranges::copy_if(entries, std::back_inserter(found),
                         [&](const KernelEntry& entry) { return entry.name == *filter.name; });
    if (found.empty()) return unknown_name(*filter.name, filter, entries);
    entries = std::move(found);
  }
  Report report;
  report.schema = "kvsim.kernels/1";
  report.command = "kernels";
  report.input = Json::object();
  report.input["units"] = false;
  report.input["name"] = filter.name ? Json(*filter.name) : Json();
  report.input["operator"] = filter.operator_name ? Json(*filter.operator_name) : Json();
  report.input["device"] = filter.device ? Json(*filter.device) : Json();
  report.result = Json::object();
  report.result["kernels"] = Json::array();
  for (const KernelEntry& entry : entries) report.result["kernels"].push_back(entry_json(entry));
  if (filter.name) {
    for (const KernelEntry& entry : entries) report.tables.push_back(entry_table(entry));
    return report;
  }
  report.headline = fmt::format("{} kernel{}.", entries.size(), entries.size() == 1 ? "" : "s");
  Table table = list_table(entries);
  table.notes.insert(table.notes.begin(),
                     {"",
                      "evidence, how well the source supports the row: documented, measured on the "
                      "hardware, inferred from source code, or assumed.",
                      "`kvsim kernels NAME` tells everything about one; `kvsim kernels --units` "
                      "lists matrix units with their parameters."});
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace kvsim
