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
#include "experiments/statistics/samples.h"
#include "experiments/studies/localise_parts.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// A measure of KL by its field in the records.
constexpr std::array<std::string_view, 3> measures{"step_kl", "forced_kl", "free_kl"};

/// The step at which a text parts; beyond every step where it does not.
double flip_of(const Json& row) {
  const Json& flip = row.at("flip");
  return flip.is_null() ? 0x1p62 : flip.get<double>();
}

/// What all prompts say of one patch of hidden states.
struct HiddenFigures {
  std::string group;
  std::string name;
  std::array<std::vector<RecoveryPair>, measures.size()> kl = {};
  std::array<Recovery, measures.size()> recovery = {};
  std::int64_t parted = 0;   ///< texts that part from the one without the cache
  std::int64_t earlier = 0;  ///< texts that part earlier than without the patch
  std::int64_t later = 0;    ///< texts that part later, or not at all

  void add(const Json& base, const Json& row) {
    for (std::size_t i = 0; i < measures.size(); ++i) {
      kl[i].push_back({number_of(base.at(measures[i])).value_or(0),
                       number_of(row.at(measures[i])).value_or(0)});
    }
    if (!row.at("flip").is_null()) ++parted;
    const double moved = flip_of(row) - flip_of(base);
    if (moved < 0) ++earlier;
    if (moved > 0) ++later;
  }
};

std::string title_of(const HiddenFigures& figures) {
  if (figures.group == "hidden") return fmt::format("behind layer {}", figures.name);
  if (figures.group == "hiddens") return fmt::format("behind layers 0 to {}", figures.name);
  return figures.name;
}

/// All prompts.
struct FirstSteps {
  std::vector<HiddenFigures> patches;
  std::array<std::vector<double>, measures.size()> base = {};  ///< KL without a patch
  std::int64_t prompts = 0;
  std::int64_t steps = 0;  ///< of the longest text
  std::int64_t parted = 0;

  void add(const Json& values);
};

void FirstSteps::add(const Json& values) {
  ++prompts;
  const Json& without = values.at("base");
  steps = std::max(steps, values.at("steps").get<std::int64_t>());
  if (!without.at("flip").is_null()) ++parted;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    base[i].push_back(number_of(without.at(measures[i])).value_or(0));
  }
  for (const auto& [group, rows] : values.items()) {
    if (!rows.is_array()) continue;
    for (const Json& row : rows) {
      const auto name = row.at("name").get<std::string>();
      auto found = std::ranges::find_if(patches, [&](const HiddenFigures& each) {
        return each.group == group && each.name == name;
      });
      if (found == patches.end()) {
        patches.push_back({group, name});
        found = patches.end() - 1;
      }
      found->add(without, row);
    }
  }
}

SummaryTable same_tokens_table(const FirstSteps& all) {
  SummaryTable table;
  table.title = "hidden states at the first decode step, both arms fed the same tokens";
  table.columns = {{"patch", "replaced", "", true},
                   {"step", "recovery at that step (95 %)", "%"},
                   {"forced", fmt::format("over {} steps (95 %)", all.steps), "%"}};
  for (const HiddenFigures& each : all.patches) {
    table.rows.push_back({cell(title_of(each)), recovery_cell(each.recovery[0].pooled),
                          recovery_cell(each.recovery[1].pooled)});
  }
  table.notes = {
      fmt::format("KL without a patch: {:.4g} nats at that step, {:.4g} over the steps; "
                  "{} of {} prompts have none at that step",
                  statistics::moments(all.base[0]).mean, statistics::moments(all.base[1]).mean,
                  std::ranges::count(all.base[0], 0.0), all.prompts)};
  return table;
}

SummaryTable own_tokens_table(const FirstSteps& all) {
  SummaryTable table;
  table.title = "the same patches by the paper's measure, each text after its own tokens";
  table.columns = {{"patch", "replaced", "", true},
                   {"mean", "mean recovery (95 %)", "%"},
                   {"median", "median", "%"},
                   {"parted", "texts that part", ""},
                   {"earlier", "earlier than without", ""},
                   {"later", "later", ""}};
  for (const HiddenFigures& each : all.patches) {
    table.rows.push_back({cell(title_of(each)), recovery_cell(each.recovery[2].mean),
                          cell(each.recovery[2].median), cell(each.parted), cell(each.earlier),
                          cell(each.later)});
  }
  table.notes = {
      fmt::format("KL over {} steps without a patch: {:.4g} nats; {} of {} texts part, and from "
                  "there on two sentences are compared",
                  all.steps, statistics::moments(all.base[2]).mean, all.parted, all.prompts),
      "a patch that moves where a text parts makes the mean larger or smaller, whatever it "
      "repairs"};
  return table;
}

Json result_of(const FirstSteps& all) {
  Json result = {{"prompts", all.prompts}, {"steps", all.steps}, {"parted", all.parted}};
  for (std::size_t i = 0; i < measures.size(); ++i) {
    result[std::string(measures[i])] = json_of(statistics::moments(all.base[i]).mean);
  }
  for (const HiddenFigures& each : all.patches) {
    Json& figures = result[each.group][each.name];
    for (std::size_t i = 0; i < measures.size(); ++i) {
      figures[std::string(measures[i])] = json_of(each.recovery[i]);
    }
    figures["parted"] = each.parted;
    figures["earlier"] = each.earlier;
    figures["later"] = each.later;
  }
  return result;
}

}  // namespace

Result<bool> summarize_first_steps(const StudyRecords& records, StudySummary& summary) {
  FirstSteps all;
  for (const StudyRecords::Unit& unit : records.units) {
    if (unit.unit.part == localise_first_step_part) all.add(unit.values);
  }
  if (all.prompts == 0) return true;
  for (HiddenFigures& each : all.patches) {
    for (std::size_t i = 0; i < measures.size(); ++i) {
      const auto recovery = recovery_of(each.kl[i]);
      if (!recovery) return recovery.error();
      each.recovery[i] = *recovery;
    }
  }
  summary.tables.push_back(same_tokens_table(all));
  summary.tables.push_back(own_tokens_table(all));
  summary.result["first_step"] = result_of(all);
  return true;
}

}  // namespace kvsim::experiments
