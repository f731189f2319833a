// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "cli/replay/report_text.h"
#include "softfloat/formats.h"
#include "softfloat/sha256.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Format;

MappedComparison compare_mapped(const Replay& replay, const Format& format,
                                std::span<const std::byte> a, std::span<const std::byte> b,
                                bool with_map) {
  MappedComparison out{
      compare_codes(format, a, b, replay.nan),
      max_row_ulp(format, a, b, replay.shape.size() == 1 ? 1 : replay.shape.back()),
      {}};
  if (with_map && out.summary.different != 0) {
    out.map = mismatch_map(format, a, b, replay.heads, replay.positions, replay.nan);
  }
  return out;
}

/// "3 kernels in 2 bit-equality classes; two classes differ in up to 63 of 4096 elements, by at
/// most 2 ulp."
std::string classes_headline(const Replay& replay, const ReplayFindings& findings) {
  const std::size_t count = findings.representatives.size();
  if (count == 1) return fmt::format("All {} give the same bits.", replay.outputs.size());
  std::int64_t different = 0;
  double farthest = 0;
  for (const auto& pair : findings.pairs) {
    if (!pair) continue;
    different = std::max(different, pair->summary.different);
    farthest = std::max(farthest, pair->max_row_ulp);
  }
  return fmt::format(
      "{} results in {} bit-equality classes, which differ in up to {} of {} elements, by at most "
      "{} ulp of the row's largest.",
      replay.outputs.size(), count, different, element_count(replay), distance_text(farthest));
}

/// "12 of 4096 elements differ from d".
std::string differ_text(const Replay& replay, const Comparison& summary, std::string_view name) {
  return fmt::format("{} of {} {} {} from {}", summary.different, summary.elements,
                     plural(replay.element_name, summary.elements),
                     summary.different == 1 ? "differs" : "differ", name);
}

void add_expectation(Answer& answer, const Replay& replay, const ReplayFindings& findings,
                     const Expected& expected) {
  const std::string name = printable(expected.name);
  std::size_t equal = 0;
  std::int64_t mismatches = 0;
  std::size_t worst = replay.outputs.size();  // the first output that differs
  for (std::size_t i = 0; i < replay.outputs.size(); ++i) {
    const std::int64_t different = findings.expected[i].summary.different;
    mismatches += different;
    if (different == 0) ++equal;
    if (different != 0 && worst == replay.outputs.size()) worst = i;
  }
  const std::int64_t elements = element_count(replay);
  const bool single = replay.outputs.size() == 1;
  answer.report.result["mismatches"] = mismatches;
  if (worst == replay.outputs.size()) {
    answer.report.headline =
        elements == 1
            ? fmt::format("The {} equals {} bit for bit.", replay.element_name, name)
            : fmt::format("All {} {}s equal {} bit for bit.", elements, replay.element_name, name);
    if (!single) {
      answer.report.headline =
          fmt::format("All {} results equal {} bit for bit.", replay.outputs.size(), name);
    }
    return;
  }
  const ReplayOutput& output = replay.outputs[worst];
  const Comparison& summary = findings.expected[worst].summary;
  const std::string differ = differ_text(replay, summary, name);
  const std::string first =
      first_text(replay, output.format, summary.first, output.bytes, expected.bytes);
  answer.exit_code = ExitCode::check_failed;
  answer.report.headline = single ? differ + "."
                                  : fmt::format("{} of {} results equal {} bit for bit.", equal,
                                                replay.outputs.size(), name);
  answer.complaint = single ? fmt::format("{}; the first is {}", differ, first)
                            : fmt::format("{}: {}; the first is {}", output.name, differ, first);
  Json at = Json::object();
  at["name"] = output.name;
  at["at"] = element_at(replay.shape, summary.first);
  for (const auto& [key, bytes] : {std::pair("found", std::span<const std::byte>(output.bytes)),
                                   std::pair("expected", expected.bytes)}) {
    const softfloat::Bits code = code_at(output.format, bytes, summary.first);
    at[key] = Json::object();
    at[key]["bits"] = softfloat::to_bits_text(output.format, code);
    at[key]["hex_float"] = softfloat::to_hex_float(output.format, code);
    at[key]["decimal"] = softfloat::to_decimal(output.format, code);
  }
  answer.report.result["first"] = std::move(at);
}

/// The lines about the only output.
void add_single(std::vector<std::pair<std::string, std::string>>& facts, const Replay& replay,
                const ReplayFindings& findings, const std::optional<Expected>& expected) {
  const ReplayOutput& output = replay.outputs.front();
  if (output.evidence) facts.emplace_back("evidence", evidence_text(output));
  if (!output.choices.empty()) facts.emplace_back("chosen", choices_text(output.choices));
  if (output.exp != ExpKnowledge::none) facts.emplace_back("exp", exp_text(output));
  if (output.band) {
    facts.emplace_back("moved by errors of exp", band_text(output, element_count(replay)));
  }
  facts.emplace_back("sha256", findings.digests.front());
  if (!expected) return;
  const Comparison& summary = findings.expected.front().summary;
  facts.emplace_back("mismatches", fmt::format("{}", summary.different));
  if (summary.different == 0) return;
  facts.emplace_back("distance", fmt::format("at most {} ulp, {} in the mean of all; at most "
                                             "{} ulp of the row's largest",
                                             summary.max_ulp, distance_text(summary.mean_ulp),
                                             distance_text(findings.expected.front().max_row_ulp)));
  facts.emplace_back(
      "first", first_text(replay, output.format, summary.first, output.bytes, expected->bytes));
}

}  // namespace

std::string class_name(std::size_t number) {
  std::string name;
  for (;;) {
    name.insert(name.begin(), static_cast<char>('A' + number % 26));
    if (number < 26) return name;
    number = number / 26 - 1;
  }
}

std::vector<std::int64_t> element_at(std::span<const std::int64_t> shape, std::int64_t index) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t axis = shape.size(); axis > 0; --axis) {
    at[axis - 1] = index % shape[axis - 1];
    index /= shape[axis - 1];
  }
  return at;
}

ReplayFindings find_differences(const Replay& replay, const std::optional<Expected>& expected) {
  ReplayFindings out;
  std::vector<CodedResult> results;
  for (const ReplayOutput& output : replay.outputs) {
    out.digests.push_back(sha256(output.bytes));
    results.push_back({output.format, output.bytes});
    if (expected) {
      out.expected.push_back(
          compare_mapped(replay, output.format, output.bytes, expected->bytes, true));
    }
  }
  out.classes = equality_classes(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (out.classes[i] == out.representatives.size()) out.representatives.push_back(i);
  }
  for (std::size_t i = 0; i < out.representatives.size(); ++i) {
    for (std::size_t j = i + 1; j < out.representatives.size(); ++j) {
      const CodedResult& a = results[out.representatives[i]];
      const CodedResult& b = results[out.representatives[j]];
      out.pairs.push_back(a.format == b.format ? std::optional(compare_mapped(
                                                     replay, a.format, a.bytes, b.bytes, i == 0))
                                               : std::nullopt);
    }
  }
  return out;
}

Answer replay_answer(const Replay& replay, const std::string& path,
                     const std::optional<Expected>& expected) {
  const ReplayFindings findings = find_differences(replay, expected);
  Answer answer;
  Report& report = answer.report;
  report.schema = "kvsim.replay/1";
  report.command = "replay " + replay.operator_name;
  report.input = Json::object();
  report.input["operator"] = replay.operator_name;
  report.input["tensors"] = printable(path, path.size());
  report.input["expect"] =
      expected ? Json(printable(expected->name, expected->name.size())) : Json();
  for (const auto& [name, value] : replay.input.items()) report.input[name] = value;
  report.result = replay_result_json(replay, findings);

  std::vector<std::pair<std::string, std::string>> facts = replay.facts;
  const bool single = replay.outputs.size() == 1;
  if (single) add_single(facts, replay, findings, expected);
  report.headline = single ? fmt::format("Replayed {} {}.", element_count(replay),
                                         plural(replay.element_name, element_count(replay)))
                           : classes_headline(replay, findings);
  if (expected) add_expectation(answer, replay, findings, *expected);
  report.tables.push_back(list_of(facts));
  if (!single) report.tables.push_back(outputs_table(replay, findings));
  if (findings.representatives.size() > 1) {
    report.tables.push_back(classes_table(replay, findings));
  }
  const std::string wanted = expected ? printable(expected->name) : std::string();
  for (std::size_t i = 0; i < findings.expected.size(); ++i) {
    if (findings.expected[i].map.empty() || replay.shape.size() == 1) continue;
    const std::string subject = single ? std::string("the result") : replay.outputs[i].name;
    report.tables.push_back(map_table(replay, findings.expected[i].map,
                                      fmt::format("Where {} differs from {}:", subject, wanted)));
  }
  for (std::size_t j = 1; j < findings.representatives.size() && !expected; ++j) {
    const auto& pair = findings.pairs[j - 1];
    if (!pair) continue;
    report.tables.push_back(
        map_table(replay, pair->map, fmt::format("Where classes A and {} differ:", class_name(j))));
  }
  return answer;
}

}  // namespace kvsim
