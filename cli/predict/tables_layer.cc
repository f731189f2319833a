// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Parts 1 to 4: one layer.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "cli/predict/cells.h"
#include "cli/predict/tables.h"
#include "softfloat/evidence.h"

namespace kvsim::prediction_tables {
namespace {

void add_side(Table& table, const char* name, const AttentionSide& side) {
  table.rows.push_back(
      {Cell(name),
       Cell(side.kernel->name),
       Cell(softfloat::to_string(side.kernel->evidence)),
       count(side.queries),
       count(side.keys),
       count(side.splits),
       count(side.block_columns),
       figure(side.error.relative_l2),
       {fmt::format("{:.4g}", side.error.max_ulp), json_number(side.error.max_ulp)},
       Cell(exp_text(side.exp_bounded))});
}

std::string joined(const std::vector<std::string>& rules) {
  std::string text;
  for (const std::string& rule : rules) {
    if (!text.empty()) text += "; ";
    text += rule;
  }
  return text;
}

/// At most two rules for people, all of them for JSON.
Cell rules_cell(const std::vector<std::string>& rules) {
  constexpr std::size_t shown = 2;
  if (rules.size() <= shown) return {joined(rules), Json(rules)};
  return {fmt::format("{}; {}; and {} more", rules[0], rules[1], rules.size() - shown),
          Json(rules)};
}

Cell sizes_cell(const std::vector<IndexRange>& sizes) {
  Json ranges = Json::array();
  for (const IndexRange& range : sizes) ranges.push_back(Json::array({range.first, range.last}));
  return {range_text(sizes, 6), std::move(ranges)};
}

}  // namespace

std::string_view exp_text(bool bounded) { return bounded ? "bounded" : "exact"; }

Table attention_sides(const Prediction& prediction) {
  Table table;
  table.title =
      fmt::format("1 One attention layer, {} of the sequence: each kernel against exact attention",
                  prediction.attention.positions == 1
                      ? std::string("last query")
                      : fmt::format("last {} queries", prediction.attention.positions));
  table.columns = {left_column("cache", "cache"),          left_column("kernel", "kernel"),
                   left_column("evidence", "evidence"),    right_column("queries", "queries"),
                   right_column("keys", "keys"),           right_column("splits", "splits"),
                   right_column("block", "block", "keys"), right_column("relative_l2", "rel L2"),
                   right_column("max_ulp", "max", "ulp"),  left_column("exp", "exp")};
  add_side(table, "on", prediction.attention.on);
  add_side(table, "off", prediction.attention.off);
  table.notes.emplace_back(
      "rel L2: the root of the sum of squared differences, over that of the squared results; ulp: "
      "units in the last place");
  if (!prediction.attention.whole_prefix) {
    table.notes.emplace_back(
        "cache-off: the last queries stand for the whole prefix, which would fill the device and "
        "is not split");
  }
  if (prediction.band) {
    const ExponentialBand& band = *prediction.band;
    table.notes.push_back(
        fmt::format("exp: bounded: moved by up to ± {} ulp, {} seeds: {} to {} elements differ, "
                    "rel L2 {} to {}",
                    band.ulp, band.runs, band.least_differing, band.most_differing,
                    figure_text(band.least_relative_l2), figure_text(band.most_relative_l2)));
  }
  return table;
}

Table ulp_histogram(const Prediction& prediction) {
  const VectorDifference& difference = prediction.attention.difference;
  Table table;
  table.title = fmt::format(
      "Cache-on against cache-off: {} of {} outputs differ ({}), rel L2 {}, by distance:",
      difference.differing, difference.elements, percent_text(difference.share()),
      figure_text(difference.relative_l2));
  table.columns = {right_column("ulp", "distance", "ulp"), right_column("count", "outputs")};
  for (const UlpBin& bin : difference.histogram) {
    if (bin.count == 0) continue;
    table.rows.push_back({Cell(bin.from == bin.to ? std::to_string(bin.from)
                                                  : fmt::format("{}-{}", bin.from, bin.to)),
                          count(bin.count)});
  }
  return table;
}

Table projections(const Prediction& prediction) {
  const ProjectionDifference& found = prediction.projections;
  Table table;
  table.title = fmt::format(
      "2 K and V, one row at a time against {} at once, before anything else has happened:",
      counted(found.launch_rows, "row", "rows"));
  table.columns = {left_column("projection", "projection")};
  add_difference_columns(table);
  for (const auto& [name, difference] : {std::pair{"K", &found.k}, std::pair{"V", &found.v}}) {
    std::vector<Cell> cells{Cell(name)};
    add_difference_cells(cells, *difference);
    table.rows.push_back(std::move(cells));
  }
  table.notes.push_back("one row:  " + found.one_row_rule);
  table.notes.push_back("all rows: " + found.all_rows_rule);
  return table;
}

Table size_classes(const Prediction& prediction) {
  Table table;
  table.title =
      "3 The same row among other shapes: each line is a class of sizes that give equal bits, "
      "against "
      "the first size:";
  table.columns = {left_column("question", "question"),    left_column("operator", "operator"),
                   left_column("sizes", "sizes"),          right_column("differing", "differing"),
                   right_column("elements", "of"),         right_column("max_ulp", "max", "ulp"),
                   left_column("rules", "kernel and rule")};
  for (const SizeClasses& answer : prediction.shapes.classes) {
    for (const SizeClass& each : answer.classes) {
      table.rows.push_back({Cell(answer.question), Cell(answer.operator_name),
                            sizes_cell(each.sizes), count(each.from_reference.differing),
                            count(each.from_reference.elements), count(each.from_reference.max_ulp),
                            rules_cell(each.rules)});
    }
  }
  return table;
}

Table chunks(const Prediction& prediction) {
  Table table;
  if (prediction.shapes.chunks.empty()) return table;
  table.title =
      "A part of a prompt, with what came before in the cache, against the prompt at once:";
  table.columns = {left_column("question", "question"), left_column("operator", "operator"),
                   right_column("positions", "positions")};
  add_difference_columns(table);
  table.columns.push_back(left_column("rule", "kernel and rule"));
  table.columns.push_back(left_column("whole_rule", "at once"));
  for (const ChunkDifference& chunk : prediction.shapes.chunks) {
    std::vector<Cell> cells{
        Cell(chunk.question),
        Cell(chunk.operator_name),
        {fmt::format("{}-{}", chunk.first, chunk.last), Json::array({chunk.first, chunk.last})}};
    add_difference_cells(cells, chunk.difference);
    cells.emplace_back(chunk.rule);
    cells.emplace_back(chunk.whole_rule == chunk.rule ? "the same" : chunk.whole_rule);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table grouped_queries(const Prediction& prediction) {
  const GroupedQueries& grouped = prediction.grouped;
  Table table;
  table.title =
      fmt::format("4 Grouped queries, {} one K/V head: does sharing amplify rounding errors?",
                  counted(grouped.group, "query head reads", "query heads read"));
  table.columns = {
      left_column("source", "error of"),      right_column("mean_correlation", "correlation ρ"),
      right_column("formula", "√(1+(R-1)ρ)"), right_column("amplification", "measured"),
      right_column("ceiling", "ceiling √R"),  right_column("projected", "after projection")};
  for (const GroupedError& error : grouped.errors) {
    table.rows.push_back({Cell(error.source), factor(error.mean_correlation), factor(error.formula),
                          factor(error.amplification), factor(grouped.ceiling),
                          factor(error.projected)});
  }
  table.notes.push_back(fmt::format(
      "√(1+(R-1)ρ): the amplification that the correlation of the errors of R query heads "
      "predicts; "
      "measured: the plain sum over the heads of a group, against a K/V head for each query head; "
      "after projection: the same behind random output weights, where 1 is expected"));
  table.notes.push_back(fmt::format(
      "control: with K and V repeated for every query head {} of {} outputs have other bits",
      grouped.repeated.differing, grouped.repeated.elements));
  return table;
}

}  // namespace kvsim::prediction_tables
