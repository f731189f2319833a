// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/report_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/replay/report.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Format;

constexpr std::size_t ranges_shown = 8;   ///< of one head in the map for people
constexpr std::size_t groups_shown = 16;  ///< lines of one map
constexpr std::string_view bounded_note =
    "exp bounded: the GPU's exp is known within bounds only (docs/exp.md); bits of real hardware "
    "need --exp-table";

std::string code_text(const Format& format, softfloat::Bits code) {
  return fmt::format("{} ({})", softfloat::to_bits_text(format, code),
                     softfloat::to_decimal(format, code));
}

/// "row 41" or "[3, 12, 5]".
std::string place_text(const Replay& replay, std::int64_t index) {
  if (replay.shape.size() == 1) return fmt::format("{} {}", replay.element_name, index);
  return fmt::format("[{}]", fmt::join(element_at(replay.shape, index), ", "));
}

bool any_exp(const Replay& replay) {
  return std::ranges::any_of(
      replay.outputs, [](const ReplayOutput& output) { return output.exp != ExpKnowledge::none; });
}

}  // namespace

std::int64_t element_count(const Replay& replay) {
  std::int64_t count = 1;
  for (const std::int64_t size : replay.shape) count *= size;
  return count;
}

std::string plural(std::string_view name, std::int64_t count) {
  return count == 1 ? std::string(name) : fmt::format("{}s", name);
}

std::string first_text(const Replay& replay, const Format& format, std::int64_t index,
                       std::span<const std::byte> found, std::span<const std::byte> expected) {
  return fmt::format("{}: found {}, expected {}", place_text(replay, index),
                     code_text(format, code_at(format, found, index)),
                     code_text(format, code_at(format, expected, index)));
}

std::string distance_text(double distance) { return fmt::format("{:.3g}", distance); }

std::string exp_text(const ReplayOutput& output) {
  switch (output.exp) {
    case ExpKnowledge::exact:
      return "exact";
    case ExpKnowledge::bounded:
      return "bounded";
    case ExpKnowledge::none:
      break;
  }
  return "-";
}

std::string evidence_text(const ReplayOutput& output) {
  return output.evidence ? std::string(softfloat::to_string(*output.evidence)) : std::string("-");
}

std::string band_text(const ReplayOutput& output, std::int64_t elements) {
  if (!output.band) return "-";
  return fmt::format("{} of {} elements, at most {} ulp ({} reruns with exp ± {:g} ulp)",
                     output.band->different, elements, output.band->max_ulp, output.band->reruns,
                     output.band->ulp);
}

std::string choices_text(const Json& choices) {
  std::string text;
  for (const auto& [name, value] : choices.items()) {
    if (!text.empty()) text += ", ";
    text +=
        fmt::format("{} {}{}", name, value.is_string() ? value.get<std::string>() : value.dump(),
                    name == "block" ? " keys" : "");
  }
  return text.empty() ? "-" : text;
}

Table list_of(const std::vector<std::pair<std::string, std::string>>& facts) {
  Table table;
  table.show_headings = false;
  table.columns = {{"fact", "fact", "", Align::left}, {"value", "value", "", Align::left}};
  for (const auto& [name, value] : facts) table.rows.push_back({Cell(name), Cell(value)});
  return table;
}

Table map_table(const Replay& replay, const std::vector<MismatchGroup>& map, std::string title) {
  Table table;
  table.title = std::move(title);
  const bool has_heads = !replay.head_name.empty();
  if (has_heads) table.columns.push_back({"heads", plural(replay.head_name, 2), "", Align::left});
  table.columns.push_back({"positions", std::string(replay.position_names), "", Align::left});
  table.columns.push_back({"mismatches", "elements that differ", "", Align::right});
  for (std::size_t i = 0; i < std::min(map.size(), groups_shown); ++i) {
    std::vector<Cell> row;
    if (has_heads) row.emplace_back(range_text(map[i].heads, ranges_shown));
    row.emplace_back(range_text(map[i].positions, ranges_shown));
    row.emplace_back(fmt::format("{}", map[i].different));
    table.rows.push_back(std::move(row));
  }
  if (map.size() > groups_shown) {
    table.notes.push_back(fmt::format("… {} lines in all", map.size()));
  }
  return table;
}

Table outputs_table(const Replay& replay, const ReplayFindings& findings) {
  const bool bands = std::ranges::any_of(
      replay.outputs, [](const ReplayOutput& output) { return output.band.has_value(); });
  const bool chosen = std::ranges::any_of(
      replay.outputs, [](const ReplayOutput& output) { return !output.choices.empty(); });
  Table table;
  table.title = "Results:";
  table.columns = {{"name", "kernel", "", Align::left}, {"class", "class", "", Align::left}};
  const bool graded = std::ranges::any_of(
      replay.outputs, [](const ReplayOutput& output) { return output.evidence.has_value(); });
  if (graded) table.columns.push_back({"evidence", "evidence", "", Align::left});
  if (chosen) table.columns.push_back({"choices", "chosen", "", Align::left});
  if (any_exp(replay)) table.columns.push_back({"exp", "exp", "", Align::left});
  if (bands) table.columns.push_back({"band", "moved by errors of exp", "", Align::left});
  if (!findings.expected.empty()) {
    table.columns.push_back({"mismatches", "mismatches", "", Align::right});
    table.columns.push_back({"max_row_ulp", "max", "ulp of row", Align::right});
    table.columns.push_back({"max_ulp", "max", "ulp", Align::right});
    table.columns.push_back({"mean_ulp", "mean", "ulp", Align::right});
  }
  table.columns.push_back({"sha256", "sha256", "", Align::left});
  for (std::size_t i = 0; i < replay.outputs.size(); ++i) {
    const ReplayOutput& output = replay.outputs[i];
    std::vector<Cell> row{Cell(output.name), Cell(class_name(findings.classes[i]))};
    if (graded) row.emplace_back(evidence_text(output));
    if (chosen) row.emplace_back(choices_text(output.choices));
    if (any_exp(replay)) row.emplace_back(exp_text(output));
    if (bands) row.emplace_back(band_text(output, element_count(replay)));
    if (!findings.expected.empty()) {
      const Comparison& summary = findings.expected[i].summary;
      row.emplace_back(fmt::format("{}", summary.different));
      row.emplace_back(distance_text(findings.expected[i].max_row_ulp));
      row.emplace_back(fmt::format("{}", summary.max_ulp));
      row.emplace_back(distance_text(summary.mean_ulp));
    }
    row.emplace_back(findings.digests[i]);
    table.rows.push_back(std::move(row));
  }
  table.notes.emplace_back("class: results with the same letter are equal bit for bit");
  if (std::ranges::any_of(replay.outputs, [](const ReplayOutput& output) {
        return output.exp == ExpKnowledge::bounded;
      })) {
    table.notes.emplace_back(bounded_note);
  }
  return table;
}

Table classes_table(const Replay& replay, const ReplayFindings& findings) {
  const std::size_t count = findings.representatives.size();
  Table table;
  table.title = fmt::format(
      "Elements, of {}, that differ between two classes (largest difference, in units in the last "
      "place of the row's largest result):",
      element_count(replay));
  table.columns.push_back({"class", "class", "", Align::left});
  std::vector<std::vector<std::string>> cells(count, std::vector<std::string>(count, "-"));
  auto pair = findings.pairs.begin();
  for (std::size_t i = 0; i < count; ++i) {
    table.columns.push_back({class_name(i), class_name(i), "", Align::right});
    for (std::size_t j = i + 1; j < count; ++j, ++pair) {
      const std::optional<MappedComparison>& compared = *pair;
      cells[i][j] = compared ? fmt::format("{} ({})", compared->summary.different,
                                           distance_text(compared->max_row_ulp))
                             : std::string("other format");
      cells[j][i] = cells[i][j];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Cell> row{Cell(class_name(i))};
    for (std::size_t j = 0; j < count; ++j) row.emplace_back(cells[i][j]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace kvsim
