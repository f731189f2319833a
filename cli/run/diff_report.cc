// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/diff_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cli/predict/cells.h"
#include "cli/printable.h"
#include "cli/run/run_tables.h"
#include "run/run_results.h"

namespace kvsim {
namespace {

using prediction_tables::count;
using prediction_tables::figure;
using prediction_tables::left_column;
using prediction_tables::nothing;
using prediction_tables::right_column;

constexpr std::size_t rows_for_people = 20;

/// One level over all prompts.
struct Level {
  explicit Level(const char* called) : name(called) {}

  const char* name;
  std::int64_t compared = 0;  ///< digests, or steps
  std::int64_t prompts = 0;   ///< that differ
  std::optional<std::int64_t> first_prompt;
  std::string where;  ///< in that prompt

  void add(std::int64_t prompt, std::int64_t count, const std::optional<std::string>& difference) {
    compared += count;
    if (!difference) return;
    ++prompts;
    if (first_prompt) return;
    first_prompt = prompt;
    where = *difference;
  }
};

std::optional<std::string> place(const std::optional<StateDifference>& state) {
  if (!state) return std::nullopt;
  return fmt::format("step {}, layer {}, {}, head {}, position {}", state->step, state->layer,
                     printable(state->operation), state->head, state->position);
}

std::optional<std::string> place(const std::optional<LayerDifference>& layer) {
  if (!layer) return std::nullopt;
  return fmt::format("step {}, layer {}", layer->step, layer->layer);
}

std::optional<std::string> place(const std::optional<std::int64_t>& step) {
  if (!step) return std::nullopt;
  return fmt::format("step {}", *step);
}

std::optional<std::string> place(const std::optional<TokenFlip>& flip) {
  if (!flip) return std::nullopt;
  return fmt::format("step {}, token {} against {}", flip->step, flip->first, flip->second);
}

std::vector<Level> levels_of(const RecordComparison& comparison) {
  std::vector<Level> levels{Level("state"), Level("layer"), Level("route"), Level("logits"),
                            Level("token")};
  for (const PromptDifference& prompt : comparison.prompts) {
    const std::int64_t steps = std::min(prompt.first_steps, prompt.second_steps);
    levels[0].add(prompt.prompt, prompt.state_digests, place(prompt.state));
    levels[1].add(prompt.prompt, prompt.layer_digests, place(prompt.layer));
    levels[2].add(prompt.prompt, prompt.route_digests, place(prompt.route));
    levels[3].add(prompt.prompt, prompt.token_digests, place(prompt.logits));
    levels[4].add(prompt.prompt, steps, place(prompt.token));
  }
  return levels;
}

Table level_table(const std::vector<Level>& levels) {
  Table table;
  table.title = "Where they first differ, level by level:";
  table.columns = {left_column("level", "level"), right_column("compared", "compared"),
                   right_column("prompts", "prompts that differ"),
                   right_column("first_prompt", "prompt"), left_column("where", "first there")};
  for (const Level& level : levels) {
    const bool is_known = level.compared > 0;
    table.rows.push_back({level.name, count(level.compared),
                          is_known ? count(level.prompts) : nothing(),
                          level.first_prompt ? count(*level.first_prompt) : nothing(),
                          !is_known             ? Cell("not recorded", Json())
                          : level.where.empty() ? Cell("equal", Json())
                                                : Cell(level.where)});
  }
  return table;
}

/// The exact KL that a run of both arms has recorded, by prompt and step.
std::map<std::pair<std::int64_t, std::int64_t>, double> recorded_kl(const DiffSide& first,
                                                                    const DiffSide& second) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> result;
  if (first.records != second.records) return result;
  for (const ComparisonRecord& pair : first.records->comparisons) {
    if (pair.first == first.arm && pair.second == second.arm && pair.kl) {
      result[{pair.prompt, pair.step}] = *pair.kl;
    }
  }
  return result;
}

Cell margin_cell(const std::optional<Margin>& margin) {
  if (!margin) return nothing();
  return {fmt::format("{:.4g} ({:.4g} ulp)", margin->logits, margin->ulps),
          json_number(margin->logits)};
}

Table prompt_table(const DiffSide& first, const DiffSide& second,
                   const RecordComparison& comparison) {
  const auto exact = recorded_kl(first, second);
  Table table;
  table.title = "Prompt by prompt; KL of the steps after equal tokens, in nats:";
  table.columns = {right_column("prompt", "prompt"),
                   right_column("first_steps", "steps"),
                   right_column("second_steps", "steps of second"),
                   right_column("layer_step", "layer at"),
                   right_column("logits_step", "logits at"),
                   right_column("flip", "flip at"),
                   right_column("first_margin", "margin of first"),
                   right_column("second_margin", "of second"),
                   right_column("kl_lower_bound", "max KL, lower bound"),
                   right_column("kl", "max KL, all logits")};
  for (const PromptDifference& prompt : comparison.prompts) {
    std::optional<double> bound;
    std::optional<double> kl;
    for (const StepComparison& step : prompt.steps) {
      if (!step.same_context) continue;
      if (step.kl) bound = std::max(bound.value_or(0), step.kl->nats);
      const auto found = exact.find({prompt.prompt, step.step});
      if (found != exact.end()) kl = std::max(kl.value_or(0), found->second);
    }
    const TokenFlip flip = prompt.token.value_or(TokenFlip{});
    table.rows.push_back({count(prompt.prompt), count(prompt.first_steps),
                          count(prompt.second_steps),
                          prompt.layer ? count(prompt.layer->step) : nothing(),
                          prompt.logits ? count(*prompt.logits) : nothing(),
                          prompt.token ? count(flip.step) : nothing(),
                          margin_cell(flip.first_margin), margin_cell(flip.second_margin),
                          bound ? figure(*bound) : nothing(), kl ? figure(*kl) : nothing()});
  }
  return table;
}

/// All prompts' churn together.
Table churn_table(const RecordComparison& comparison) {
  std::map<std::int64_t, ChurnRow> sums;
  for (const PromptDifference& prompt : comparison.prompts) {
    for (const ChurnRow& row : prompt.churn) {
      ChurnRow& sum = sums[row.id];
      sum.id = row.id;
      sum.entered += row.entered;
      sum.left += row.left;
    }
  }
  std::vector<ChurnRow> rows;
  rows.reserve(sums.size());
  for (const auto& [id, row] : sums) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const ChurnRow& a, const ChurnRow& b) {
    const std::int64_t changes_a = a.entered + a.left;
    const std::int64_t changes_b = b.entered + b.left;
    return changes_a > changes_b || (changes_a == changes_b && a.id < b.id);
  });
  Table table;
  table.title = "Tokens that entered or left the list of the largest after equal tokens:";
  table.columns = {right_column("token", "token"), right_column("entered", "entered"),
                   right_column("left", "left")};
  for (const ChurnRow& row : rows) {
    table.rows.push_back({count(row.id), count(row.entered), count(row.left)});
  }
  return table;
}

std::string meaning(const DiffSide& first, const DiffSide& second,
                    const RecordComparison& comparison, const std::vector<Level>& levels) {
  const std::string names = fmt::format("{} and {}", printable(first.arm), printable(second.arm));
  switch (verdict_of(comparison)) {
    case DiffVerdict::equal:
      return fmt::format("{} are equal: the logits of all {} steps, bit for bit.", names,
                         levels[3].compared);
    case DiffVerdict::cannot_tell:
      return fmt::format("{}: no difference in what both recorded, which is not everything.",
                         names);
    case DiffVerdict::different:
      break;
  }
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [](const Level& level) { return level.first_prompt; });
  const Level& token = levels[4];
  if (found == levels.end()) {
    return fmt::format("{} differ in the number of their steps only.", names);
  }
  const std::string flips =
      token.prompts == 0
          ? std::string("no token is another one")
          : fmt::format("another token in {} of {} prompts, first in prompt {}, {}", token.prompts,
                        comparison.prompts.size(), token.first_prompt.value_or(0), token.where);
  return fmt::format("{} differ: {} first in prompt {}, {}; {}.", names, found->name,
                     found->first_prompt.value_or(0), found->where, flips);
}

Json side_json(const DiffSide& side) {
  Json out = Json::object();
  out["file"] = side.path;
  out["arm"] = side.arm;
  return out;
}

}  // namespace

DiffVerdict verdict_of(const RecordComparison& comparison) {
  bool is_whole = comparison.only_in_first == 0 && comparison.only_in_second == 0;
  for (const PromptDifference& prompt : comparison.prompts) {
    if (prompt.state || prompt.layer || prompt.route || prompt.logits || prompt.token ||
        prompt.first_steps != prompt.second_steps) {
      return DiffVerdict::different;
    }
    const auto has_bound = [](const StepComparison& step) { return step.kl && step.kl->nats > 0; };
    if (std::any_of(prompt.steps.begin(), prompt.steps.end(), has_bound)) {
      return DiffVerdict::different;
    }
    is_whole = is_whole && prompt.token_digests == prompt.first_steps;
  }
  return is_whole ? DiffVerdict::equal : DiffVerdict::cannot_tell;
}

Report diff_report(const DiffSide& first, const DiffSide& second,
                   const RecordComparison& comparison) {
  const std::vector<Level> levels = levels_of(comparison);
  const Table level_rows = level_table(levels);
  const Table prompt_rows = prompt_table(first, second, comparison);
  const Table churn_rows = churn_table(comparison);
  Report report;
  report.schema = "kvsim.diff/1";
  report.command = "diff";
  report.headline = meaning(first, second, comparison, levels);
  Table sides;
  sides.show_headings = false;
  sides.columns = {left_column("side", "side"), left_column("what", "what")};
  sides.rows.push_back(
      {"first", fmt::format("{} of {}", printable(first.arm), printable(first.path))});
  sides.rows.push_back(
      {"second", fmt::format("{} of {}", printable(second.arm), printable(second.path))});
  if (comparison.only_in_first + comparison.only_in_second > 0) {
    sides.rows.push_back(
        {"not compared", fmt::format("{} prompts of first, {} of second", comparison.only_in_first,
                                     comparison.only_in_second)});
  }
  report.tables = {sides, level_rows, run_tables::shortened(prompt_rows, rows_for_people)};
  if (!churn_rows.rows.empty()) {
    report.tables.push_back(run_tables::shortened(churn_rows, rows_for_people));
  }
  report.input = Json::object();
  report.input["first"] = side_json(first);
  report.input["second"] = side_json(second);
  Json& result = report.result;
  result = Json::object();
  result["meaning"] = report.headline;
  const DiffVerdict verdict = verdict_of(comparison);
  result["verdict"] = verdict == DiffVerdict::equal       ? "equal"
                      : verdict == DiffVerdict::different ? "different"
                                                          : "cannot tell";
  result["only_in_first"] = comparison.only_in_first;
  result["only_in_second"] = comparison.only_in_second;
  result["levels"] = rows_as_json(level_rows);
  result["prompts"] = rows_as_json(prompt_rows);
  result["churn"] = rows_as_json(churn_rows);
  return report;
}

}  // namespace kvsim
