// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary_margins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "experiments/by_prompt.h"
#include "experiments/studies/boundary_sources.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What no error can reach: two logits that move by at most `largest` each change their order only
/// where they were at most twice that apart.
bool is_out_of_reach(const MarginStep& step) { return step.margin > 2 * step.largest; }

/// Flips as far as the two largest logits alone explain them: the second overtakes the first, or
/// meets it and has the lower index.
bool is_by_top_two(const MarginStep& step) { return step.error <= -step.margin; }

struct SourceCounts {
  std::int64_t unmoved = 0;              ///< steps whose two largest logits keep their difference
  std::int64_t out_of_reach = 0;         ///< steps
  std::int64_t impossible = 0;           ///< flips among them
  std::int64_t by_top_two = 0;           ///< flips
  std::optional<double> largest_margin;  ///< of a flip, logits
  std::optional<double> largest_ulps;
  double largest_difference = 0;  ///< of a logit
};

SourceCounts count(const SourceFigures& source) {
  SourceCounts counts;
  for (const MarginStep& step : source.steps) {
    counts.unmoved += step.error == 0 ? 1 : 0;
    counts.largest_difference = std::max(counts.largest_difference, step.largest);
    counts.out_of_reach += is_out_of_reach(step) ? 1 : 0;
    if (!step.flips) continue;
    counts.impossible += is_out_of_reach(step) ? 1 : 0;
    counts.by_top_two += is_by_top_two(step) ? 1 : 0;
    counts.largest_margin = std::max(counts.largest_margin.value_or(0), step.margin);
    counts.largest_ulps = std::max(counts.largest_ulps.value_or(0), step.ulps);
  }
  return counts;
}

double percent(std::int64_t part, std::size_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

SummaryTable sources_table(const BoundaryFigures& figures) {
  SummaryTable table;
  table.title = "sources of error, after the same tokens";
  table.columns = {{"source", "source", "", true},   {"against", "second arm", "", true},
                   {"texts", "texts", ""},           {"steps", "steps", ""},
                   {"flips", "flips", ""},           {"error", "error", "logits"},
                   {"unmoved", "none", "% of steps"}};
  table.notes = {
      "error: by how much the difference of the two largest logits moves, root mean "
      "square",
      "flips: steps at which the argmax differs from that of the text with the cache"};
  for (const auto& [name, source] : figures.sources) {
    if (source.refused.empty()) continue;
    table.notes.push_back(fmt::format("{}: texts are missing: {}", name, source.refused));
  }
  std::vector<std::string> left_out;
  left_out.reserve(error_sources().size());
  for (const ErrorSource& source : error_sources()) {
    if (!figures.sources.contains(source.name)) {
      left_out.push_back(fmt::format("{} ({})", source.name, source.what));
    }
  }
  if (!left_out.empty()) {
    table.notes.push_back(
        fmt::format("left out, because the engine has no such arm or it is one "
                    "of the two: {}",
                    fmt::join(left_out, "; ")));
  }
  return table;
}

SummaryTable reach_table() {
  SummaryTable table;
  table.title = "what can flip: margins against the largest difference of a logit at the same step";
  table.columns = {{"source", "source", "", true},
                   {"out_of_reach", "out of reach", "% of steps"},
                   {"impossible", "flips there", ""},
                   {"by_top_two", "by the top two", "% of flips"},
                   {"largest_margin", "widest flip", "logits"},
                   {"largest_ulps", "widest", "ulps"}};
  table.notes = {
      "out of reach: margins above twice the largest difference; a flip there would be a "
      "defect",
      "widest flip: the largest margin of one; by the top two: their difference has moved by the "
      "margin or more; else a third "
      "token won"};
  return table;
}

struct UlpBin {
  double from = 0;  ///< closed; the next bin's is its end
  const char* heading = "";
};
constexpr std::array<UlpBin, 8> ulp_bins{{{0, "0"},
                                          {0x1p-40, "up to 1"},
                                          {1 + 0x1p-40, "up to 2"},
                                          {2 + 0x1p-40, "up to 3"},
                                          {3 + 0x1p-40, "up to 4"},
                                          {4 + 0x1p-40, "up to 8"},
                                          {8 + 0x1p-40, "up to 16"},
                                          {16 + 0x1p-40, "above"}}};

bool is_in(const MarginStep& step, std::size_t bin) {
  const double end = bin + 1 < ulp_bins.size() ? ulp_bins[bin + 1].from : infinity;
  return step.ulps >= ulp_bins[bin].from && step.ulps < end;
}

/// "12.5 % of 40", and the share with its interval.
SummaryCell share_cell(const CountsByPrompt& counts) {
  const auto share = counts.share();
  if (!share) return {"-", nullptr};
  return {fmt::format("{:.3g} % of {}", 100 * share->value, counts.all().trials),
          Json{{"steps", counts.all().trials},
               {"flips", counts.all().successes},
               {"share", json_of(*share)}}};
}

void add_ulps(const BoundaryFigures& figures, StudySummary& summary) {
  SummaryTable table;
  table.title = "share of tokens that flip, by margin in units in the last place of the logit";
  table.columns = {{"margin", "margin", "ulps", true}};
  for (const std::string& name : figures.order) table.columns.push_back({name, name, ""});
  Json& result = summary.result["ulps"];
  result = Json::object();
  for (std::size_t bin = 0; bin < ulp_bins.size(); ++bin) {
    std::vector<SummaryCell> row{cell(ulp_bins[bin].heading)};
    for (const std::string& name : figures.order) {
      CountsByPrompt counts;
      for (const MarginStep& step : figures.sources.find(name)->second.steps) {
        if (is_in(step, bin)) counts.add(step.prompt, step.flips);
      }
      row.push_back(share_cell(counts));
      result[name][ulp_bins[bin].heading] = row.back().value;
    }
    table.rows.push_back(std::move(row));
  }
  summary.tables.push_back(std::move(table));
}

}  // namespace

void add_margins(const BoundaryFigures& figures, StudySummary& summary) {
  SummaryTable sources = sources_table(figures);
  SummaryTable reach = reach_table();
  std::int64_t steps = 0;
  std::int64_t impossible = 0;
  for (const std::string& name : figures.order) {
    const SourceFigures& source = figures.sources.find(name)->second;
    const SourceCounts counts = count(source);
    const std::int64_t flips = source.flips();
    const double unmoved = percent(counts.unmoved, source.steps.size());
    sources.rows.push_back({cell(name), cell(source.against), cell(source.texts),
                            cell(std::ssize(source.steps)), cell(flips), cell(source.error_size()),
                            cell(unmoved)});
    const double out = percent(counts.out_of_reach, source.steps.size());
    const std::optional<double> top_two =
        flips > 0 ? std::optional(percent(counts.by_top_two, static_cast<std::size_t>(flips)))
                  : std::nullopt;
    reach.rows.push_back({cell(name), cell(out), cell(counts.impossible), cell(top_two),
                          cell(counts.largest_margin), cell(counts.largest_ulps)});
    CountsByPrompt share;
    for (const MarginStep& step : source.steps) share.add(step.prompt, step.flips);
    summary.result["sources"][name] = {{"against", source.against},
                                       {"texts", source.texts},
                                       {"parted", source.parted.size()},
                                       {"steps", source.steps.size()},
                                       {"flips", flips},
                                       {"flip_share", json_of(share.share())},
                                       {"error", json_of(source.error_size())},
                                       {"unmoved_steps", counts.unmoved},
                                       {"largest_difference", json_of(counts.largest_difference)},
                                       {"out_of_reach_steps", counts.out_of_reach},
                                       {"flips_out_of_reach", counts.impossible},
                                       {"flips_by_top_two", counts.by_top_two},
                                       {"largest_flip_margin", json_of(counts.largest_margin)},
                                       {"largest_flip_ulps", json_of(counts.largest_ulps)}};
    steps += std::ssize(source.steps);
    impossible += counts.impossible;
  }
  summary.headline = fmt::format("{} of {} tokens flip over {} sources of error; ", figures.flips(),
                                 steps, figures.order.size());
  summary.headline +=
      impossible == 0
          ? "none where the margin is above twice the largest difference of a logit."
          : fmt::format("{} of them where no error can reach: records or program are wrong.",
                        impossible);
  summary.tables.push_back(std::move(sources));
  summary.tables.push_back(std::move(reach));
  add_ulps(figures, summary);
}

}  // namespace kvsim::experiments
