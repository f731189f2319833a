// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/studies/falsify_formats.h"
#include "experiments/studies/falsify_summaries.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// What the prompts say of one format.
struct FormatFigures {
  std::int64_t steps = 0;
  std::int64_t different = 0;  ///< steps whose KL is not 0
  double unit_roundoff = 0;
  double kl = 0;                    ///< mean
  double absolute_kl_binary32 = 0;  ///< mean |KL|
  std::int64_t negative = 0;        ///< of those in binary32
  double logits = 0;                ///< root mean square

  void add(const Json& values);
  void finish();
};

void FormatFigures::add(const Json& values) {
  unit_roundoff = values.at("unit_roundoff").get<double>();
  for (std::size_t i = 0; i < values.at("kl").size(); ++i) {
    const double each = number_of(values.at("kl").at(i)).value_or(0);
    const double rounded = number_of(values.at("kl_binary32").at(i)).value_or(0);
    const double relative = number_of(values.at("logits").at(i)).value_or(0);
    ++steps;
    different += each > 0 ? 1 : 0;
    kl += each;
    absolute_kl_binary32 += std::abs(rounded);
    negative += rounded < 0 ? 1 : 0;
    logits += relative * relative;
  }
}

void FormatFigures::finish() {
  const auto count = static_cast<double>(std::max<std::int64_t>(1, steps));
  kl /= count;
  absolute_kl_binary32 /= count;
  logits = std::sqrt(logits / count);
}

std::optional<double> ratio(double part, double whole) {
  if (!(whole > 0)) return {};
  return part / whole;
}

}  // namespace

void summarize_formats(std::span<const Json> prompts, StudySummary& summary) {
  std::map<std::string, FormatFigures, std::less<>> figures;
  std::vector<std::string> missing;
  std::string given_format;
  double floor = 0;
  double floor_binary32 = 0;
  for (const Json& values : prompts) {
    for (const auto& [name, format] : values.at("formats").items()) figures[name].add(format);
    for (const Json& name : values.at("missing")) missing.push_back(name.get<std::string>());
    given_format = values.at("given").get<std::string>();
    const Json& replica = values.at("replica");
    floor = std::max(floor, number_of(replica.at("kl")).value_or(0));
    floor_binary32 =
        std::max(floor_binary32, std::abs(number_of(replica.at("kl_binary32")).value_or(0)));
  }
  for (auto& [name, each] : figures) each.finish();
  SummaryTable table;
  table.title = "the two arms in other formats, after the same tokens";
  table.columns = {{"format", "format", "", true},
                   {"kl", "KL", "nats"},
                   {"ratio", "÷ as given", ""},
                   {"predicted", "(u ÷ u)²", ""},
                   {"kl_binary32", "|KL| in f32", "nats"},
                   {"logits", "logits", "rel L2"},
                   {"different", "steps that differ", "", true}};
  Json& result = summary.result["formats"];
  const FormatFigures& given = figures.at(std::string(format_rows().front().name));
  for (const FormatRow& row : format_rows()) {
    const auto found = figures.find(row.name);
    if (found == figures.end()) continue;
    const FormatFigures& each = found->second;
    const std::optional<double> measured = ratio(each.kl, given.kl);
    const double u = each.unit_roundoff / given.unit_roundoff;
    const std::string share = fmt::format("{} of {}", each.different, each.steps);
    const std::string shown = row.format ? found->first : fmt::format("{}, as given", given_format);
    table.rows.push_back({cell(shown),
                          cell(each.kl),
                          cell(measured),
                          cell(u * u),
                          cell(each.absolute_kl_binary32),
                          cell(each.logits),
                          {share, each.different}});
    result[found->first] = {{"steps", each.steps},
                            {"different", each.different},
                            {"unit_roundoff", each.unit_roundoff},
                            {"kl", each.kl},
                            {"ratio", json_of(measured)},
                            {"predicted", u * u},
                            {"kl_binary32", each.absolute_kl_binary32},
                            {"negative_binary32", each.negative},
                            {"logits", each.logits}};
  }
  result["given"] = given_format;
  result["floor"] = {{"replica", floor}, {"replica_binary32", floor_binary32}};
  table.notes = {
      "KL: binary64, mean over steps; |KL| in f32: the same logits, every operation of "
      "the metric in binary32",
      fmt::format("replica of the arm with the cache: KL {:.3g}, in f32 {:.3g}", floor,
                  floor_binary32)};
  std::ranges::sort(missing);
  missing.erase(std::ranges::unique(missing).begin(), missing.end());
  if (!missing.empty()) {
    table.notes.push_back(
        fmt::format("not here, the engine refuses: {}", fmt::join(missing, ", ")));
  }
  summary.tables.push_back(std::move(table));
}

}  // namespace kvsim::experiments
