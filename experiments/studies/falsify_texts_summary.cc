// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/statistics/correlation.h"
#include "experiments/statistics/samples.h"
#include "experiments/studies/falsify_summaries.h"
#include "experiments/tables.h"
#include "sim/inputs.h"

namespace kvsim::experiments {
namespace {

constexpr std::uint64_t stream = 0x706c617465617521;  // of drawn plateaus
constexpr std::int64_t replicates = 1000;

/// Texts that have parted: when, and KL of every step of the free run.
struct FreeRun {
  double flip = 0;
  double before = 0;  ///< sum of KL of the steps up to the flip: after the same tokens
  std::vector<double> after;
  std::int64_t steps_before = 0;

  [[nodiscard]] double mean(double sum_after) const {
    return (before + sum_after) /
           static_cast<double>(steps_before + static_cast<std::int64_t>(after.size()));
  }
};

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  numbers.reserve(list.size());
  for (const Json& each : list) numbers.push_back(number_of(each).value_or(0));
  return numbers;
}

std::optional<FreeRun> free_run_of(const Json& values) {
  if (values.at("flip").is_null()) return {};
  FreeRun run;
  run.flip = values.at("flip").get<double>();
  run.after = numbers_of(values.at("apart"));
  if (run.after.empty()) return {};
  const std::vector<double> forced = numbers_of(values.at("forced"));
  run.steps_before = static_cast<std::int64_t>(run.flip) + 1;
  run.before = sum_of(
      std::span(forced).first(std::min(forced.size(), static_cast<std::size_t>(run.steps_before))));
  return run;
}

/// The correlation of the flip with something of each run; nothing where it cannot be told.
template <class Figure>
std::optional<statistics::Correlation> correlation(std::span<const FreeRun> runs,
                                                   const Figure& figure) {
  std::vector<double> flips;
  std::vector<double> values;
  for (const FreeRun& run : runs) {
    flips.push_back(run.flip);
    values.push_back(figure(run));
  }
  const auto result = statistics::pearson(flips, values);
  if (!result) return {};
  return *result;
}

/// Correlations of flip and mean KL where every step after the flip has a KL drawn from the
/// plateau, the same for early and late flips: the middle 95 % of many draws, and their median.
std::optional<statistics::Estimate> without_difference(std::span<const FreeRun> runs,
                                                       std::span<const double> plateau) {
  if (plateau.empty()) return {};
  std::vector<double> correlations;
  correlations.reserve(replicates);
  std::uint64_t index = 0;
  for (std::int64_t i = 0; i < replicates; ++i) {
    const auto r = correlation(runs, [&](const FreeRun& run) {
      double sum = 0;
      for (std::size_t step = 0; step < run.after.size(); ++step) {
        const double place = uniform(1, stream, index++) * static_cast<double>(plateau.size());
        sum += plateau[std::min(static_cast<std::size_t>(place), plateau.size() - 1)];
      }
      return run.mean(sum);
    });
    if (r) correlations.push_back(r->r.value);
  }
  if (correlations.size() < 2) return {};
  std::ranges::sort(correlations);
  return statistics::Estimate{statistics::sorted_quantile(correlations, 0.5),
                              statistics::sorted_quantile(correlations, 0.025),
                              statistics::sorted_quantile(correlations, 0.975)};
}

/// Runs of `length` steps that flip at each step once, with nothing before the flip.
std::vector<FreeRun> runs_that_flip_anywhere(std::int64_t length) {
  std::vector<FreeRun> runs;
  for (std::int64_t flip = 0; flip + 1 < length; ++flip) {
    FreeRun run;
    run.flip = static_cast<double>(flip);
    run.steps_before = flip + 1;
    run.after.resize(static_cast<std::size_t>(length - run.steps_before));
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string text_of(const std::optional<statistics::Estimate>& r) {
  return r ? fmt::format("{:.2f} ({:.2f} to {:.2f})", r->value, r->low, r->high) : "-";
}

Json json_of_r(const std::optional<statistics::Estimate>& r) {
  return r ? json_of(*r) : Json(nullptr);
}

std::optional<statistics::Estimate> r_of(const std::optional<statistics::Correlation>& found) {
  if (!found) return {};
  return found->r;
}

std::optional<double> mean_of(std::span<const double> values) {
  if (values.empty()) return {};
  return statistics::moments(values).mean;
}

/// Mean KL after the flip of the texts that part in the earlier half ÷ that of the others.
std::optional<double> early_over_late(std::vector<FreeRun> runs) {
  if (runs.size() < 4) return {};
  std::ranges::sort(runs, {}, &FreeRun::flip);
  std::vector<double> early;
  std::vector<double> late;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    (2 * i < runs.size() ? early : late).push_back(mean_of(runs[i].after).value_or(0));
  }
  return mean_of(early).value_or(0) / mean_of(late).value_or(0);
}

struct StrategyTexts {
  std::int64_t texts = 0;
  std::int64_t longest = 0;
  std::vector<double> forced;
  std::vector<FreeRun> runs;
};

}  // namespace

void summarize_texts(std::span<const TextOfStrategy> texts, std::span<const Json> unrelated,
                     StudySummary& summary) {
  std::vector<double> plateau;
  for (const Json& values : unrelated) {
    for (const double kl : numbers_of(values.at("kl"))) plateau.push_back(kl);
  }
  std::vector<std::string> order;
  std::map<std::string, StrategyTexts, std::less<>> strategies;
  for (const TextOfStrategy& text : texts) {
    if (!strategies.contains(text.strategy)) order.push_back(text.strategy);
    StrategyTexts& strategy = strategies[text.strategy];
    ++strategy.texts;
    for (const double kl : numbers_of(text.values.at("forced"))) strategy.forced.push_back(kl);
    strategy.longest = std::max(strategy.longest, std::ssize(text.values.at("forced")));
    if (auto run = free_run_of(text.values)) strategy.runs.push_back(std::move(*run));
  }
  SummaryTable forced;
  forced.title = "KL after the same tokens";
  forced.columns = {{"strategy", "strategy", "", true},
                    {"texts", "texts", ""},
                    {"steps", "steps", ""},
                    {"kl", "mean KL", "nats"}};
  SummaryTable free;
  free.title = "flip index against KL of texts that have parted";
  free.columns = {{"strategy", "strategy", "", true},
                  {"parted", "parted", ""},
                  {"after", "KL after", "nats"},
                  {"early_late", "early ÷ late", ""},
                  {"r", "r, whole run", "", true},
                  {"r_after", "r, after the flip", "", true},
                  {"r_without", "r by averaging", "", true}};
  Json& result = summary.result["texts"];
  result["plateau"] = {{"steps", plateau.size()}, {"kl", json_of(mean_of(plateau))}};
  std::int64_t longest = 0;
  for (const std::string& name : order) {
    const StrategyTexts& each = strategies.find(name)->second;
    longest = std::max(longest, each.longest);
    std::vector<double> after;
    for (const FreeRun& run : each.runs)
      after.insert(after.end(), run.after.begin(), run.after.end());
    const auto whole = r_of(
        correlation(each.runs, [](const FreeRun& run) { return run.mean(sum_of(run.after)); }));
    const auto behind = r_of(
        correlation(each.runs, [](const FreeRun& run) { return mean_of(run.after).value_or(0); }));
    const auto without =
        each.runs.size() < 4 ? std::nullopt : without_difference(each.runs, plateau);
    const auto ratio = early_over_late(each.runs);
    forced.rows.push_back(
        {cell(name), cell(each.texts), cell(std::ssize(each.forced)), cell(mean_of(each.forced))});
    free.rows.push_back({cell(name),
                         cell(std::ssize(each.runs)),
                         cell(mean_of(after)),
                         cell(ratio),
                         {text_of(whole), json_of_r(whole)},
                         {text_of(behind), json_of_r(behind)},
                         {text_of(without), json_of_r(without)}});
    result[name] = {{"texts", each.texts},
                    {"parted", each.runs.size()},
                    {"kl_same_tokens", json_of(mean_of(each.forced))},
                    {"kl_after", json_of(mean_of(after))},
                    {"early_over_late", json_of(ratio)},
                    {"r", json_of_r(whole)},
                    {"r_after", json_of_r(behind)},
                    {"r_without_difference", json_of_r(without)}};
  }
  const auto anywhere = without_difference(runs_that_flip_anywhere(longest), plateau);
  result["r_flips_anywhere"] = json_of_r(anywhere);
  free.notes = {
      fmt::format("two unrelated texts: KL {} nats, {} steps", cell(mean_of(plateau)).text,
                  plateau.size()),
      "r: of the flip index with KL, mean of the whole run or of the steps after the flip (95 %)",
      "by averaging: KL after every flip drawn from unrelated texts, so that early and late flips "
      "are alike",
      fmt::format("flips at any of {} steps alike, KL after them drawn: r = {}", longest,
                  text_of(anywhere))};
  summary.tables.push_back(std::move(forced));
  summary.tables.push_back(std::move(free));
}

}  // namespace kvsim::experiments
