// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/behaviour_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiments/metrics/consistency.h"
#include "experiments/statistics/multiple_tests.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

using metrics::Consistency;

/// In the order of metrics::AnswerRule.
constexpr std::array<const char*, answer_rules> rule_keys{"marked", "last_number"};
constexpr std::array<const char*, answer_rules> rule_names{"after ####", "last number"};

SummaryTable answers_table() {
  SummaryTable table;
  table.title = "right answers";
  table.columns = {{"strategy", "strategy", "", true},
                   {"rule", "answer", "", true},
                   {"texts", "texts", ""},
                   {"on", "with cache", "%"},
                   {"off", "without", "%"},
                   {"discordant", "better", "with : without"},
                   {"p", "p", ""},
                   {"corrected_p", "corrected", ""},
                   {"difference", "difference", "points"}};
  table.notes = {
      "better: prompts that one side answers rightly with more seeds; p is McNemar's exact test of "
      "them",
      "corrected: Bonferroni, over the strategies; the interval draws prompts"};
  return table;
}

/// Prompts that one side answers rightly more often.
statistics::DiscordantPairs discordant(const AnswerFigures& answers) {
  statistics::DiscordantPairs pairs;
  for (const auto& [prompt, on] : answers.on.prompts()) {
    const std::int64_t off = answers.off.prompts().find(prompt)->second.successes;
    if (on.successes > off) ++pairs.only_first;
    if (on.successes < off) ++pairs.only_second;
  }
  return pairs;
}

SummaryCell points_cell(const std::optional<statistics::Estimate>& difference) {
  if (!difference) return {"-", nullptr};
  std::string text = fmt::format("{:.1f}", 100 * difference->value);
  if (!std::isnan(difference->low)) {
    text += fmt::format(" ({:.1f} to {:.1f})", 100 * difference->low, 100 * difference->high);
  }
  return {std::move(text), json_of(*difference)};
}

/// One rule, all strategies that it can judge.
Result<bool> add_rule(const BehaviourFigures& figures, std::size_t rule, SummaryTable& table,
                      Json& result) {
  std::vector<std::string> names;
  std::vector<double> p;
  for (const std::string& name : figures.order) {
    const AnswerFigures& answers = figures.strategies.find(name)->second.answers[rule];
    if (answers.on.all().trials == 0) continue;
    const auto test = statistics::mcnemar(discordant(answers));
    if (!test) return test.error();
    names.push_back(name);
    p.push_back(test->p);
  }
  const auto corrected = statistics::bonferroni(p);
  if (!corrected) return corrected.error();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const AnswerFigures& answers = figures.strategies.find(names[i])->second.answers[rule];
    const statistics::DiscordantPairs pairs = discordant(answers);
    const auto percent = [](const CountsByPrompt& counts) {
      return 100 * static_cast<double>(counts.all().successes) /
             static_cast<double>(counts.all().trials);
    };
    const auto difference = answers.difference.mean();
    table.rows.push_back({cell(names[i]),
                          cell(rule_names[rule]),
                          cell(answers.on.all().trials),
                          cell(percent(answers.on)),
                          cell(percent(answers.off)),
                          {fmt::format("{} : {}", pairs.only_first, pairs.only_second),
                           Json{{"with", pairs.only_first}, {"without", pairs.only_second}}},
                          cell(p[i]),
                          cell((*corrected)[i]),
                          points_cell(difference)});
    result[names[i]]["answers"][rule_keys[rule]] = {
        {"texts", answers.on.all().trials},    {"on", json_of(answers.on.share())},
        {"off", json_of(answers.off.share())}, {"better_on", pairs.only_first},
        {"better_off", pairs.only_second},     {"p", p[i]},
        {"corrected_p", (*corrected)[i]},      {"difference", json_of(difference)}};
  }
  return true;
}

SummaryTable consistency_table() {
  SummaryTable table;
  table.title = "prompts that are answered rightly always, sometimes or never over the seeds";
  table.columns = {
      {"strategy", "strategy", "", true}, {"rule", "answer", "", true}, {"seeds", "seeds", ""},
      {"on", "with cache", ""},           {"off", "without", ""},       {"changed", "changed", ""}};
  table.notes = {
      "always, sometimes, never: prompts; changed: prompts that are another one without"};
  return table;
}

std::vector<statistics::Count> counts_of(const CountsByPrompt& counts) {
  std::vector<statistics::Count> list;
  list.reserve(counts.prompts().size());
  for (const auto& [prompt, count] : counts.prompts()) list.push_back(count);
  return list;
}

/// The fewest seeds of a prompt.
std::int64_t seeds_of(const std::vector<statistics::Count>& prompts) {
  std::int64_t fewest = prompts.empty() ? 0 : prompts.front().trials;
  for (const statistics::Count& each : prompts) fewest = std::min(fewest, each.trials);
  return fewest;
}

Result<bool> add_consistency(const std::string& name, const StrategyFigures& strategy,
                             std::size_t rule, SummaryTable& table, Json& result) {
  const std::vector<statistics::Count> on = counts_of(strategy.answers[rule].on);
  if (seeds_of(on) < 2) return true;
  const auto compared = metrics::compare_consistency(on, counts_of(strategy.answers[rule].off));
  if (!compared) return compared.error();
  std::array<Json, 2> sides{Json::object(), Json::object()};
  std::array<std::string, 2> texts;
  for (std::size_t each = 0; each < metrics::consistencies; ++each) {
    const auto kind = static_cast<Consistency>(each);
    const std::array counts{compared->of_first(kind), compared->of_second(kind)};
    for (std::size_t side = 0; side < 2; ++side) {
      sides[side][std::string(to_text(kind))] = counts[side];
      texts[side] += fmt::format("{}{}", each > 0 ? ", " : "", counts[side]);
    }
  }
  table.rows.push_back({cell(name),
                        cell(rule_names[rule]),
                        cell(seeds_of(on)),
                        {texts[0], sides[0]},
                        {texts[1], sides[1]},
                        cell(compared->changed())});
  result["consistency"][rule_keys[rule]] = {{"seeds", seeds_of(on)},
                                            {"on", sides[0]},
                                            {"off", sides[1]},
                                            {"changed", compared->changed()}};
  return true;
}

}  // namespace

Result<bool> add_answers(const BehaviourFigures& figures, StudySummary& summary) {
  SummaryTable answers = answers_table();
  SummaryTable consistency = consistency_table();
  for (const std::string& name : figures.order) {
    summary.result[name]["answers"] = nullptr;
    summary.result[name]["consistency"] = nullptr;
  }
  for (std::size_t rule = 0; rule < answer_rules; ++rule) {
    Result<bool> added = add_rule(figures, rule, answers, summary.result);
    if (!added) return added;
    for (const std::string& name : figures.order) {
      added = add_consistency(name, figures.strategies.find(name)->second, rule, consistency,
                              summary.result[name]);
      if (!added) return added;
    }
  }
  for (SummaryTable* table : {&answers, &consistency}) {
    if (!table->rows.empty()) summary.tables.push_back(std::move(*table));
  }
  return true;
}

}  // namespace kvsim::experiments
