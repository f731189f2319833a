// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/behaviour_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "experiments/metrics/plateau.h"
#include "experiments/statistics/samples.h"
#include "experiments/studies/behaviour_answers.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

std::optional<double> median_of(std::vector<double> numbers) {
  if (numbers.empty()) return {};
  std::ranges::sort(numbers);
  return statistics::sorted_quantile(numbers, 0.5);
}

SummaryTable texts_table() {
  SummaryTable table;
  table.title = "texts with the cache against texts without it";
  table.columns = {{"strategy", "strategy", "", true},    {"texts", "texts", ""},
                   {"full_length", "of full length", ""}, {"parted", "parted", ""},
                   {"diverged", "parted (95 %)", ""},     {"median_flip", "median flip", "token"}};
  table.notes = {"of full length: with as many tokens as were allowed, cut off or just long enough",
                 "intervals take the prompt as one, also over several seeds"};
  return table;
}

void add_texts(SummaryTable& table, Json& result, const std::string& name,
               const StrategyFigures& figures) {
  const statistics::Count& all = figures.parted.all();
  const auto share = figures.parted.share();
  const std::optional<double> median = median_of(figures.flips);
  table.rows.push_back({cell(name), cell(all.trials), cell(figures.full_length),
                        cell(all.successes), percent_cell(share), cell(median)});
  result["texts"] = all.trials;
  result["prompts"] = figures.parted.prompts().size();
  result["full_length"] = figures.full_length;
  result["parted"] = all.successes;
  result["diverged"] = json_of(share);
  result["median_flip"] = json_of(median);
}

SummaryTable same_tokens_table() {
  SummaryTable table;
  table.title = "both fed the tokens of the text with the cache: what arithmetic changes";
  table.columns = {{"strategy", "strategy", "", true},
                   {"steps", "steps", ""},
                   {"kl", "KL (95 %)", "nats"},
                   {"js", "JS", "nats"},
                   {"largest_kl", "largest KL", "nats"},
                   {"argmax_differs", "flips", "steps"},
                   {"largest_flip_margin", "their margin", "logits"}};
  table.notes = {
      "flips: steps at which the argmax differs; their margin: the largest of them, with "
      "the cache"};
  return table;
}

void add_same_tokens(SummaryTable& table, Json& result, const std::string& name,
                     const StrategyFigures& figures) {
  const NumbersByPrompt& kl = figures.same_tokens.all().kl;
  const auto mean = kl.mean();
  const auto js = figures.js.mean();
  const std::int64_t flips = figures.argmax_differs.all().successes;
  const std::optional<double> margin =
      flips > 0 ? std::optional(figures.largest_flip_margin) : std::nullopt;
  const std::optional<double> js_value = js ? std::optional(js->value) : std::nullopt;
  table.rows.push_back({cell(name), cell(kl.count()), cell(mean), cell(js_value),
                        cell(kl.largest()), cell(flips), cell(margin)});
  result["steps"] = kl.count();
  result["kl"] = json_of(mean);
  result["js"] = json_of(js);
  result["largest_kl"] = json_of(kl.largest());
  result["argmax_differs"] = flips;
  result["argmax_differs_share"] = json_of(figures.argmax_differs.share());
  result["largest_flip_margin"] = json_of(margin);
}

struct PartName {
  TextPart part;
  const char* key;
  const char* heading;
};
constexpr std::array<PartName, text_parts> part_names{
    {{TextPart::first_third, "first_third", "first third"},
     {TextPart::second_third, "second_third", "second"},
     {TextPart::last_third, "last_third", "last"},
     {TextPart::up_to_the_fork, "up_to_the_fork", "up to the fork"},
     {TextPart::behind_the_fork, "behind_the_fork", "behind it"}}};

SummaryTable along_table(std::string title) {
  SummaryTable table;
  table.title = std::move(title);
  table.columns = {
      {"strategy", "strategy", "", true}, {"figure", "figure", "", true}, {"all", "all steps", ""}};
  for (const PartName& each : part_names) table.columns.push_back({each.key, each.heading, ""});
  return table;
}

/// Two rows of a strategy: mean KL, and how often it is above what was reported.
void add_along(SummaryTable& table, Json& result, const std::string& name,
               const KlAlongTexts& along) {
  std::vector<SummaryCell> means{cell(name), cell("mean KL (nats)")};
  std::vector<SummaryCell> shares{cell(name),
                                  cell(fmt::format("KL > {} (% of steps)", reported_kl))};
  const auto add = [&](const char* key, const StepKl& steps) {
    const auto mean = steps.kl.mean();
    const auto share = steps.above_reported.share();
    means.push_back(cell(mean ? std::optional(mean->value) : std::nullopt));
    shares.push_back(cell(share ? std::optional(100 * share->value) : std::nullopt));
    result[key] = {
        {"steps", steps.kl.count()}, {"kl", json_of(mean)}, {"above_reported", json_of(share)}};
  };
  add("all", along.all());
  for (const PartName& each : part_names) add(each.key, along.at(each.part));
  table.rows.push_back(std::move(means));
  table.rows.push_back(std::move(shares));
}

SummaryTable plateau_table() {
  SummaryTable table;
  table.title = "KL of texts that have parted beside that of two unrelated prompts";
  table.columns = {{"strategy", "strategy", "", true},
                   {"steps", "steps behind the fork", ""},
                   {"after_flip", "KL (95 %)", "nats"},
                   {"unrelated", "unrelated (95 %)", "nats"},
                   {"ratio", "ratio (95 %)", ""}};
  table.notes = {"unrelated: the texts of two prompts, both with the cache, step by step"};
  return table;
}

/// Prompts that the unrelated pairs do not have, because the records are a part, have no numbers.
void add_plateau(SummaryTable& table, Json& result, const std::string& name,
                 const StrategyFigures& figures) {
  result["plateau"] = nullptr;
  if (figures.unrelated.count() == 0) return;
  const auto unrelated = figures.unrelated.mean();
  const auto parted = figures.kl_apart.mean();
  std::optional<statistics::Estimate> ratio;
  std::vector<std::vector<double>> after_flip;
  after_flip.reserve(figures.unrelated.prompts().size());
  for (const auto& [prompt, numbers] : figures.unrelated.prompts()) {
    const auto found = figures.kl_apart.prompts().find(prompt);
    after_flip.push_back(found == figures.kl_apart.prompts().end() ? std::vector<double>()
                                                                   : found->second);
  }
  const auto compared = metrics::compare_with_plateau(after_flip, figures.unrelated.lists(),
                                                      {.resamples = study_resamples});
  // Of one prompt that parted there is no interval.
  if (compared && figures.kl_apart.prompts_with_numbers() > 1) ratio = compared->ratio.percentile;
  table.rows.push_back(
      {cell(name), cell(figures.kl_apart.count()), cell(parted), cell(unrelated), cell(ratio)});
  result["plateau"] = {{"steps", figures.kl_apart.count()},
                       {"after_flip", json_of(parted)},
                       {"unrelated", json_of(unrelated)},
                       {"ratio", json_of(ratio)}};
}

std::string headline(const BehaviourFigures& figures) {
  statistics::Count texts;
  double largest = 0;
  for (const auto& [name, strategy] : figures.strategies) {
    texts.successes += strategy.parted.all().successes;
    texts.trials += strategy.parted.all().trials;
    largest = std::max(largest, strategy.same_tokens.all().kl.largest().value_or(0));
  }
  return fmt::format(
      "{} of {} texts part with and without the cache; after the same tokens KL is at most {:.2g} "
      "nats.",
      texts.successes, texts.trials, largest);
}

}  // namespace

Result<StudySummary> behaviour_summary(const BehaviourFigures& figures) {
  StudySummary summary;
  summary.headline = headline(figures);
  summary.result = Json::object();
  SummaryTable texts = texts_table();
  SummaryTable same = same_tokens_table();
  SummaryTable same_along = along_table("KL along those steps, after the same tokens");
  SummaryTable own_along = along_table("KL along the texts, each after its own tokens");
  own_along.notes = {"behind the fork two sentences are compared and no arithmetic"};
  SummaryTable plateau = plateau_table();
  for (const std::string& name : figures.order) {
    const StrategyFigures& strategy = figures.strategies.find(name)->second;
    Json& result = summary.result[name];
    add_texts(texts, result, name, strategy);
    add_same_tokens(same, result["same_tokens"], name, strategy);
    add_along(same_along, result["same_tokens"], name, strategy.same_tokens);
    add_along(own_along, result["own_tokens"], name, strategy.own_tokens);
    result["own_tokens"]["js_behind_the_fork"] = json_of(strategy.js_apart.mean());
    add_plateau(plateau, result, name, strategy);
  }
  for (SummaryTable* table : {&texts, &same, &same_along, &own_along, &plateau}) {
    if (!table->rows.empty()) summary.tables.push_back(std::move(*table));
  }
  const Result<bool> answered = add_answers(figures, summary);
  if (!answered) return answered.error();
  return summary;
}

}  // namespace kvsim::experiments
