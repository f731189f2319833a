// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/protocol/recovery.h"
#include "experiments/statistics/proportions.h"
#include "experiments/studies/localise_parts.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

using statistics::Count;

/// What all prompts say of one patch.
struct PatchFigures {
  std::string group;
  std::string name;
  std::vector<RecoveryPair> kl;
  Count follows;    ///< chose the donor's token, of the forks at which the two tokens differ
  Count continues;  ///< went on as the donor, of the forks behind which the two texts differ
  Recovery recovery = {};
};

/// One direction: the recipient, by its name in the records.
struct Direction {
  std::string_view field;      ///< of the records
  std::string_view recipient;  ///< for people
  std::string_view donor;
  std::vector<PatchFigures> patches = {};

  PatchFigures& figures_of(const std::string& group, const std::string& name);
  void add(const Json& fork);
};

PatchFigures& Direction::figures_of(const std::string& group, const std::string& name) {
  const auto found = std::ranges::find_if(
      patches, [&](const PatchFigures& each) { return each.group == group && each.name == name; });
  if (found != patches.end()) return *found;
  patches.push_back({group, name, {}, {}, {}});
  return patches.back();
}

void Direction::add(const Json& fork) {
  const Json& direction = fork.at(field);
  const Json& giver = fork.at(field == "live_takes" ? "one_shot" : "live");
  const bool goes_apart =
      fork.at("live").at("continuation") != fork.at("one_shot").at("continuation");
  const double base = number_of(direction.at("kl_base")).value_or(0);
  for (const auto& [group, rows] : direction.items()) {
    if (!rows.is_array()) continue;
    for (const Json& row : rows) {
      PatchFigures& figures = figures_of(group, row.at("name").get<std::string>());
      figures.kl.push_back({base, number_of(row.at("kl")).value_or(0)});
      if (fork.at("parts").get<bool>()) {
        ++figures.follows.trials;
        if (row.at("token") == giver.at("token")) ++figures.follows.successes;
      }
      if (goes_apart && row.contains("continuation")) {
        ++figures.continues.trials;
        if (row.at("continuation") == giver.at("continuation")) ++figures.continues.successes;
      }
    }
  }
}

Result<std::optional<statistics::Estimate>> share_of(const Count& count) {
  if (count.trials == 0) return std::optional<statistics::Estimate>();
  const auto share = statistics::wilson_interval(count);
  if (!share) return share.error();
  return std::optional(*share);
}

SummaryCell share_cell(const std::optional<statistics::Estimate>& share, const Count& count) {
  if (!share) return {"-", nullptr};
  return {fmt::format("{} of {} ({:.0f} to {:.0f} %)", count.successes, count.trials,
                      100 * share->low, 100 * share->high),
          json_of(*share)};
}

Json share_json(const std::optional<statistics::Estimate>& share, const Count& count) {
  Json json = share ? json_of(*share) : Json::object();
  json["successes"] = count.successes;
  json["trials"] = count.trials;
  return json;
}

/// Rows that are no single layers.
Result<SummaryTable> parts_table(const Direction& direction) {
  SummaryTable table;
  table.title = fmt::format("{} cache takes from {} cache, same tokens", direction.recipient,
                            direction.donor);
  table.columns = {{"patch", "taken", "", true},
                   {"recovery", "recovery (95 %)", "%"},
                   {"median", "median", "%"},
                   {"follows", "chooses the donor's token", ""},
                   {"continues", fmt::format("and its next {}", localise_follows), ""}};
  for (const PatchFigures& each : direction.patches) {
    if (each.group != "check" && each.group != "part" && each.group != "position") continue;
    const auto follows = share_of(each.follows);
    if (!follows) return follows.error();
    const auto continues = share_of(each.continues);
    if (!continues) return continues.error();
    const std::string prefix = each.group == "position" ? "K and V, rows: " : "";
    table.rows.push_back({cell(prefix + each.name), recovery_cell(each.recovery.pooled),
                          cell(each.recovery.median), share_cell(*follows, each.follows),
                          share_cell(*continues, each.continues)});
  }
  return table;
}

/// A row for each layer.
SummaryTable layers_table(const Direction& direction) {
  SummaryTable table;
  table.title = fmt::format("{} cache takes layers from {} cache, recovery", direction.recipient,
                            direction.donor);
  table.columns = {{"layer", "layer", ""},
                   {"single", "its K and V (95 %)", "%"},
                   {"cumulative", "K and V up to it (95 %)", "%"},
                   {"hidden", "hidden state behind it (95 %)", "%"}};
  constexpr std::array<std::string_view, 3> groups{"layer", "layers", "hidden"};
  for (const PatchFigures& each : direction.patches) {
    const auto column = std::ranges::find(groups, each.group);
    if (column == groups.end()) continue;
    auto row = std::ranges::find_if(
        table.rows, [&](const auto& cells) { return cells.front().text == each.name; });
    if (row == table.rows.end()) {
      table.rows.push_back({cell(each.name), cell("-"), cell("-"), cell("-")});
      row = table.rows.end() - 1;
    }
    (*row)[static_cast<std::size_t>(column - groups.begin()) + 1] =
        recovery_cell(each.recovery.pooled);
  }
  return table;
}

Result<Json> direction_json(const Direction& direction) {
  Json json = Json::object();
  for (const PatchFigures& each : direction.patches) {
    const auto follows = share_of(each.follows);
    if (!follows) return follows.error();
    const auto continues = share_of(each.continues);
    if (!continues) return continues.error();
    Json& figures = json[each.group][each.name];
    figures = json_of(each.recovery);
    figures["follows"] = share_json(*follows, each.follows);
    if (each.continues.trials > 0) {
      figures["continues"] = share_json(*continues, each.continues);
    }
  }
  return json;
}

/// What the two checks must give, exactly.
struct Checks {
  std::int64_t patches = 0;
  std::int64_t exact = 0;

  void add(const Direction& direction) {
    for (const PatchFigures& each : direction.patches) {
      if (each.group != "check") continue;
      const bool is_own = each.name == "own state put back";
      for (const RecoveryPair& pair : each.kl) {
        ++patches;
        if (pair.kl_patched == (is_own ? pair.kl_base : 0)) ++exact;
      }
    }
  }
};

struct ForkCounts {
  std::int64_t forks = 0;
  std::int64_t parting = 0;
  std::int64_t without = 0;    ///< texts too short for a fork
  std::int64_t undefined = 0;  ///< forks whose two passes have equal logits
};

std::string headline_of(const ForkCounts& counts, const Direction& live) {
  const auto named = [&](std::string_view name) {
    return std::ranges::find(live.patches, name, &PatchFigures::name);
  };
  const auto all = named("K and V");
  if (all == live.patches.end()) return "No text has three tokens.";
  const std::optional<RecoveryFigure>& pooled = all->recovery.pooled;
  if (!pooled) {
    return fmt::format("Two caches over the same tokens give equal logits at all {} forks.",
                       counts.forks);
  }
  const std::string follows =
      all->follows.trials == 0 ? std::string("none of the texts part")
                               : fmt::format("texts follow them at {} of {} forks where they part",
                                             all->follows.successes, all->follows.trials);
  return fmt::format(
      "Keys and values alone carry {:.4g} % of the difference of two caches over the same tokens; "
      "{}.",
      pooled->percent, follows);
}

}  // namespace

Result<bool> summarize_forks(const StudyRecords& records, StudySummary& summary) {
  std::array directions{Direction{"live_takes", "the arm's own", "the one-pass"},
                        Direction{"one_shot_takes", "the one-pass", "the arm's own"}};
  ForkCounts counts;
  for (const StudyRecords::Unit& unit : records.units) {
    if (unit.unit.part != localise_fork_part) continue;
    const Json& fork = unit.values.at("fork");
    if (fork.is_null()) {
      ++counts.without;
      continue;
    }
    ++counts.forks;
    if (fork.at("parts").get<bool>()) ++counts.parting;
    if (number_of(fork.at("live_takes").at("kl_base")) == 0.0) ++counts.undefined;
    for (Direction& direction : directions) direction.add(fork);
  }
  Checks checks;
  Json result = {{"forks", counts.forks},
                 {"parting", counts.parting},
                 {"without_fork", counts.without},
                 {"equal_logits", counts.undefined}};
  for (Direction& direction : directions) {
    for (PatchFigures& each : direction.patches) {
      const auto recovery = recovery_of(each.kl);
      if (!recovery) return recovery.error();
      each.recovery = *recovery;
    }
    checks.add(direction);
    Result<Json> json = direction_json(direction);
    if (!json) return json.error();
    result[std::string(direction.field)] = std::move(*json);
  }
  result["checks"] = {{"patches", checks.patches}, {"exact", checks.exact}};
  summary.headline = headline_of(counts, directions.front());
  for (const Direction& direction : directions) {
    Result<SummaryTable> table = parts_table(direction);
    if (!table) return table.error();
    summary.tables.push_back(std::move(*table));
  }
  std::vector<std::string>& notes = summary.tables.front().notes;
  notes = {fmt::format("{} forks, one a prompt; at {} the two caches choose another token; {} of "
                       "equal logits have no recovery; {} texts were too short",
                       counts.forks, counts.parting, counts.undefined, counts.without),
           fmt::format("own state put back gives exactly 0 %, everything exactly 100 %: {} of {} "
                       "patches",
                       checks.exact, checks.patches)};
  for (const Direction& direction : directions) {
    summary.tables.push_back(layers_table(direction));
  }
  summary.result["transplant"] = std::move(result);
  return true;
}

}  // namespace kvsim::experiments
