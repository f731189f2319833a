// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/refresh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/protocol/estimates.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/statistics/proportions.h"
#include "experiments/tables.h"
#include "experiments/work.h"
#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

/// Generated tokens from one refresh to the next; 0: never.
constexpr std::array<std::int64_t, 5> periods{1, 4, 16, 64, 0};

std::string period_name(std::int64_t period) {
  return period == 0 ? "never" : fmt::format("every {}", period);
}

class Refresh : public Study {
 public:
  [[nodiscard]] Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  [[nodiscard]] Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  [[nodiscard]] Result<StudySummary> summarize(const StudyRecords& records) const override;
};

/// The pass over the last of so many tokens, or over all of them.
PlanStep step_of(std::int64_t period, std::int64_t rows, std::int64_t step) {
  const bool is_anew = step == 0 || (period > 0 && step % period == 0);
  return is_anew ? PlanStep{0, rows, 0} : PlanStep{rows - 1, 1, rows - 1};
}

/// What the refreshed decodings compute together.
std::int64_t refreshed_work(const StudyArm& arm, std::int64_t prompt_tokens, std::int64_t steps) {
  std::int64_t work = 0;
  for (const std::int64_t period : periods) {
    PassCount count(arm, prompt_tokens);
    for (std::int64_t step = 0; step < steps; ++step) {
      count.add(step_of(period, prompt_tokens + step, step));
    }
    work += count.rows();
  }
  return work;
}

Result<std::vector<StudyUnit>> Refresh::units(const StudySetup& setup) const {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  Result<ArmWork> off = ArmWork::of(*setup.engine, setup.off);
  if (!off) return off.error();
  std::vector<StudyUnit> units;
  units.reserve(setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const std::int64_t length = prompt_tokens(setup, i);
    const Result<std::int64_t> text = off->text(length, setup.new_tokens);
    if (!text) return text.error();
    units.push_back({"text", i, 0, *text + refreshed_work(*on, length, setup.new_tokens)});
  }
  return units;
}

/// A decoding that computes its cache anew now and then.
struct Refreshed {
  std::int64_t period = 0;
  std::unique_ptr<EngineSequence> sequence;
  std::int64_t rows = 0;  ///< computed
  std::int64_t multiply_adds = 0;
  std::vector<double> kl;  ///< from the arm without a cache, by step
  std::optional<std::int64_t> flip;
};

/// The pass for the next token.
Result<EnginePass> pass_of(Refreshed& refreshed, std::span<const TokenId> tokens,
                           std::int64_t step) {
  const PlanStep pass = step_of(refreshed.period, std::ssize(tokens), step);
  refreshed.rows += pass.rows;
  Result<EnginePass> done = refreshed.sequence->pass(tokens, pass, {});
  if (done) refreshed.multiply_adds += done->cost.multiply_adds;
  return done;
}

Result<std::vector<Refreshed>> open_all(const StudyArm& arm, std::span<const TokenId> prompt,
                                        std::int64_t new_tokens) {
  std::vector<Refreshed> all;
  all.reserve(periods.size());
  for (const std::int64_t period : periods) {
    auto sequence =
        arm.engine->open(std::ssize(prompt) + new_tokens, {.prompt_tokens = std::ssize(prompt)});
    if (!sequence) return sequence.error();
    all.push_back({period, std::move(*sequence), 0, 0, {}, {}});
  }
  return all;
}

Json json_of_refreshed(const Refreshed& refreshed) {
  Json kl = Json::array();
  for (const double each : refreshed.kl) kl.push_back(json_of(each));
  const std::optional<std::int64_t>& flip = refreshed.flip;
  return {{"name", period_name(refreshed.period)},
          {"rows", refreshed.rows},
          {"multiply_adds", refreshed.multiply_adds},
          {"flip", flip ? Json(*flip) : Json(nullptr)},
          {"kl", std::move(kl)}};
}

Result<Json> Refresh::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const std::vector<TokenId>& ids = setup.prompts[static_cast<std::size_t>(unit.prompt)].prompt.ids;
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  Result<ArmSequence> text = off->open(ids, setup.new_tokens);
  if (!text) return text.error();
  Result<std::vector<Refreshed>> all = open_all(*on, ids, setup.new_tokens);
  if (!all) return all.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  std::int64_t off_multiply_adds = 0;
  std::int64_t steps = 0;
  for (; steps < setup.new_tokens;) {
    const Result<EnginePass> reference = text->next({});
    if (!reference) return reference.error();
    off_multiply_adds += reference->cost.multiply_adds;
    const std::int64_t token = argmax_of(reference->logits);
    for (Refreshed& each : *all) {
      const Result<EnginePass> pass = pass_of(each, text->tokens(), steps);
      if (!pass) return pass.error();
      const Result<Divergence> apart = divergence(pass->logits, reference->logits);
      if (!apart) return apart.error();
      each.kl.push_back(apart->kl);
      if (!each.flip && argmax_of(pass->logits) != token) each.flip = steps;
    }
    ++steps;
    if (std::ranges::find(stops, token) != stops.end()) break;
    text->feed(static_cast<TokenId>(token));
  }
  Json refreshed = Json::array();
  for (const Refreshed& each : *all) refreshed.push_back(json_of_refreshed(each));
  return Json{{"steps", steps},
              {"off_multiply_adds", off_multiply_adds},
              {"refreshed", std::move(refreshed)}};
}

/// What all prompts say of one period.
struct PeriodFigures {
  std::string name;
  std::vector<std::vector<double>> kl = {};  ///< [prompt][step]
  std::int64_t rows = 0;
  double multiply_adds = 0;
  statistics::Count flips = {};
};

Result<StudySummary> Refresh::summarize(const StudyRecords& records) const {
  std::vector<PeriodFigures> periods_seen;
  std::int64_t steps = 0;
  double off_multiply_adds = 0;
  for (const StudyRecords::Unit& unit : records.units) {
    steps += unit.values.at("steps").get<std::int64_t>();
    off_multiply_adds += unit.values.at("off_multiply_adds").get<double>();
    const Json& all = unit.values.at("refreshed");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Json& each = all.at(i);
      if (i == periods_seen.size()) periods_seen.push_back({each.at("name").get<std::string>()});
      PeriodFigures& figures = periods_seen[i];
      figures.rows += each.at("rows").get<std::int64_t>();
      figures.multiply_adds += each.at("multiply_adds").get<double>();
      ++figures.flips.trials;
      if (!each.at("flip").is_null()) ++figures.flips.successes;
      std::vector<double>& kl = figures.kl.emplace_back();
      for (const Json& number : each.at("kl")) kl.push_back(number_of(number).value_or(0));
    }
  }
  StudySummary summary;
  SummaryTable table;
  table.title = "the cache computed anew, against the arm without one, same tokens";
  table.columns = {{"refresh", "refresh", "", true},
                   {"rows", "rows a token", ""},
                   {"cost", "multiply-adds", "% of without"},
                   {"kl", "KL (95 %)", "nats"},
                   {"flips", "texts that part (95 %)", ""}};
  for (const PeriodFigures& each : periods_seen) {
    const auto share = statistics::wilson_interval(each.flips);
    if (!share) return share.error();
    const Result<Json> kl = mean_estimate(each.kl);
    if (!kl) return kl.error();
    const double rows = static_cast<double>(each.rows) / static_cast<double>(steps);
    const double cost = 100 * each.multiply_adds / off_multiply_adds;
    table.rows.push_back(
        {cell(each.name), cell(rows), cell(cost), range_cell(*kl), percent_cell(*share)});
    summary.result[each.name] = {{"rows_a_token", json_of(rows)},
                                 {"cost_percent", json_of(cost)},
                                 {"kl", *kl},
                                 {"parted", each.flips.successes},
                                 {"texts", each.flips.trials},
                                 {"share", json_of(*share)}};
  }
  table.notes = {
      "texts part where a token of the text without a cache is not the most probable one"};
  const PeriodFigures& first = periods_seen.front();
  const PeriodFigures& last = periods_seen.back();
  summary.headline =
      fmt::format("{} of {} texts part without a refresh, {} with one {}.", last.flips.successes,
                  last.flips.trials, first.flips.successes, "for every token");
  summary.tables.push_back(std::move(table));
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_refresh() { return std::make_unique<Refresh>(); }

}  // namespace kvsim::experiments
