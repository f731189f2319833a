// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/replay_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/proportions.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// What all prompts say of one way.
struct WayFigures {
  std::string name;
  std::vector<std::vector<double>> turns = {};  ///< [prompt][pivot]: 1 where the text parts
  std::vector<double> kl = {};
  std::int64_t pivots = 0;
  std::int64_t equal_state = 0;
  std::int64_t equal_logits = 0;
  std::int64_t turned = 0;
  std::optional<std::int64_t> first_layer = {};  ///< the lowest that ever differs

  void add(const Json& way);
  [[nodiscard]] statistics::Count prompts() const {
    const auto turned_prompts = std::ranges::count_if(turns, [](const auto& pivots_of) {
      return std::ranges::find(pivots_of, 1.0) != pivots_of.end();
    });
    return {turned_prompts, std::ssize(turns)};
  }
};

void WayFigures::add(const Json& way) {
  ++pivots;
  bool is_equal = true;
  for (const char* field : {"key_layers", "value_layers"}) {
    for (const Json& layer : way.at(field)) {
      const auto index = layer.get<std::int64_t>();
      first_layer = std::min(first_layer.value_or(index), index);
      is_equal = false;
    }
  }
  if (is_equal) ++equal_state;
  if (way.at("equal_logits").get<bool>()) ++equal_logits;
  kl.push_back(number_of(way.at("kl")).value_or(0));
  const bool parts = !way.at("parts").is_null();
  if (parts) ++turned;
  turns.back().push_back(parts ? 1 : 0);
}

/// One part of the records.
struct PartFigures {
  std::vector<WayFigures> ways;
  std::string left_out;

  void add(const Json& values);
};

void PartFigures::add(const Json& values) {
  if (values.contains("left_out")) {
    left_out = values.at("left_out").get<std::string>();
    return;
  }
  bool is_first = true;
  for (const Json& pivot : values.at("pivots")) {
    const Json& rows = pivot.at("ways");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == ways.size()) ways.push_back({rows.at(i).at("name").get<std::string>()});
      if (is_first) ways[i].turns.emplace_back();
      ways[i].add(rows.at(i));
    }
    is_first = false;
  }
}

/// The share of pivots that turn, less that of the replica, with the interval of draws of prompts.
Result<std::optional<statistics::Estimate>> above_floor(const WayFigures& way,
                                                        const WayFigures& floor) {
  if (way.turns.size() < 2) return std::optional<statistics::Estimate>();
  std::vector<std::vector<double>> differences = way.turns;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (std::size_t j = 0; j < differences[i].size(); ++j) differences[i][j] -= floor.turns[i][j];
  }
  const auto drawn = statistics::bootstrap_mean(differences, {.resamples = 2000});
  if (!drawn) return drawn.error();
  return std::optional(drawn->percentile);
}

std::string of_text(std::int64_t part, std::int64_t whole) {
  return fmt::format("{} of {}", part, whole);
}

Result<bool> add_part(std::string_view part, const PartFigures& figures, StudySummary& summary) {
  if (figures.ways.empty()) {
    if (!figures.left_out.empty()) {
      summary.result[std::string(part)] = {{"left_out", figures.left_out}};
      summary.tables.front().notes.push_back(
          fmt::format("left out: batch-invariant kernels: {}", figures.left_out));
    }
    return true;
  }
  SummaryTable table;
  table.title = fmt::format("caches made again, {} kernels", part);
  table.columns = {{"way", "made by", "", true},
                   {"state", "equal state", ""},
                   {"first_layer", "first other layer", ""},
                   {"logits", "equal logits", ""},
                   {"kl", "mean KL", "nats"},
                   {"turned", "texts that turn", ""},
                   {"above_floor", "above the replica (95 %)", ""}};
  Json& result = summary.result[std::string(part)];
  const WayFigures& floor = figures.ways.front();
  for (const WayFigures& way : figures.ways) {
    const auto found = above_floor(way, floor);
    if (!found) return found.error();
    const std::optional<statistics::Estimate>& above = *found;
    const auto share = statistics::wilson_interval(way.prompts());
    if (!share) return share.error();
    const std::optional<double> layer =
        way.first_layer ? std::optional(static_cast<double>(*way.first_layer)) : std::nullopt;
    const double kl = statistics::moments(way.kl).mean;
    table.rows.push_back({cell(way.name),
                          {of_text(way.equal_state, way.pivots), way.equal_state},
                          cell(layer),
                          {of_text(way.equal_logits, way.pivots), way.equal_logits},
                          cell(kl),
                          {of_text(way.turned, way.pivots), way.turned},
                          above ? percent_cell(*above) : cell("-")});
    result[way.name] = {{"pivots", way.pivots},
                        {"equal_state", way.equal_state},
                        {"first_layer", json_of(layer)},
                        {"equal_logits", way.equal_logits},
                        {"kl", json_of(kl)},
                        {"turned", way.turned},
                        {"turned_prompts", json_of(*share)},
                        {"above_floor", above ? json_of(*above) : Json(nullptr)}};
  }
  summary.tables.push_back(std::move(table));
  return true;
}

/// Whether every way gave the live cache's bits.
bool is_exact(const PartFigures& figures) {
  return std::ranges::all_of(figures.ways, [](const WayFigures& way) {
    return way.equal_state == way.pivots && way.equal_logits == way.pivots && way.turned == 0;
  });
}

}  // namespace

Result<StudySummary> summarize_replay(const StudyRecords& records) {
  PartFigures usual;
  PartFigures invariant;
  for (const StudyRecords::Unit& unit : records.units) {
    (unit.unit.part == replay_usual ? usual : invariant).add(unit.values);
  }
  if (usual.ways.empty()) {
    return Error{ErrorKind::cannot_tell,
                 "replay: no text has three tokens; accepted: a longer one"};
  }
  StudySummary summary;
  Result<bool> done = add_part(replay_usual, usual, summary);
  if (done) done = add_part(replay_invariant, invariant, summary);
  if (!done) return done.error();
  summary.tables.front().notes.insert(summary.tables.front().notes.begin(),
                                      "at steps spread over each text; equal state: every K and V, "
                                      "bit for bit; turn: one of the 16 "
                                      "tokens behind is another one");
  const WayFigures& again = usual.ways.back();
  summary.headline = fmt::format(
      "Sending the tokens again gives the live cache at {} of {} steps, a "
      "replica at {}",
      again.equal_state, again.pivots, usual.ways.front().equal_state);
  if (!invariant.ways.empty()) {
    const bool exact = is_exact(invariant);
    summary.result["batch_invariant_exact"] = exact;
    summary.headline += exact ? "; with batch-invariant kernels every way gives its bits"
                              : "; with batch-invariant kernels NOT every way gives its bits";
  }
  summary.headline += ".";
  return summary;
}

}  // namespace kvsim::experiments
