// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/behaviour.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/protocol/pair_text.h"
#include "experiments/statistics/proportions.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// One array for each figure of the steps after the same tokens.
Json steps_of(const std::vector<ForcedStep>& steps) {
  const auto logits = [](const std::optional<Margin>& margin) {
    return margin ? std::optional(margin->logits) : std::nullopt;
  };
  Json arrays = {{"kl", Json::array()},
                 {"js", Json::array()},
                 {"largest_logit_difference", Json::array()},
                 {"argmax_differs", Json::array()},
                 {"on_margin", Json::array()},
                 {"off_margin", Json::array()},
                 {"top_two_error", Json::array()}};
  for (const ForcedStep& step : steps) {
    arrays["kl"].push_back(json_of(step.kl));
    arrays["js"].push_back(json_of(step.js));
    arrays["largest_logit_difference"].push_back(step.difference.largest);
    arrays["argmax_differs"].push_back(step.first_argmax != step.second_argmax);
    arrays["on_margin"].push_back(json_of(logits(step.first_margin)));
    arrays["off_margin"].push_back(json_of(logits(step.second_margin)));
    arrays["top_two_error"].push_back(json_of(step.top_two_error));
  }
  return arrays;
}

Json text_of(const std::vector<std::int64_t>& tokens, const StudySetup& setup) {
  Json text = {{"tokens", tokens}};
  if (!setup.decode) return text;
  const std::vector<TokenId> ids(tokens.begin(), tokens.end());
  text["text"] = setup.decode(ids);
  return text;
}

/// What the texts of a strategy say.
struct StrategyFigures {
  std::int64_t texts = 0;
  std::vector<double> flips;  ///< steps at which texts parted
  std::vector<double> kl;     ///< of every step after the same tokens
  std::vector<double> js;
  double largest_kl = 0;
  std::int64_t argmax_differs = 0;
  double largest_flip_margin = 0;  ///< with the cache, where the argmax differs
  std::vector<double> kl_apart;

  void add(const Json& values);
};

void StrategyFigures::add(const Json& values) {
  ++texts;
  if (const Json& flip = values.at("flip"); !flip.is_null()) flips.push_back(flip.get<double>());
  const Json& forced = values.at("forced");
  for (std::size_t i = 0; i < forced.at("kl").size(); ++i) {
    kl.push_back(number_of(forced.at("kl").at(i)).value_or(0));
    js.push_back(number_of(forced.at("js").at(i)).value_or(0));
    largest_kl = std::max(largest_kl, kl.back());
    if (!forced.at("argmax_differs").at(i).get<bool>()) continue;
    ++argmax_differs;
    const double margin = number_of(forced.at("on_margin").at(i)).value_or(0);
    largest_flip_margin = std::max(largest_flip_margin, margin);
  }
  for (const Json& each : values.at("kl_apart")) kl_apart.push_back(number_of(each).value_or(0));
}

std::optional<double> mean_of(std::span<const double> numbers) {
  if (numbers.empty()) return {};
  return statistics::moments(numbers).mean;
}

std::optional<double> median_of(std::vector<double> numbers) {
  if (numbers.empty()) return {};
  std::ranges::sort(numbers);
  return statistics::sorted_quantile(numbers, 0.5);
}

SummaryTable strategies_table() {
  SummaryTable table;
  table.title = "texts with the cache against texts without it";
  table.columns = {{"strategy", "strategy", "", true},
                   {"texts", "texts", ""},
                   {"diverged", "diverged (95 %)", ""},
                   {"median_flip", "median flip", "token"},
                   {"kl", "KL, same tokens", "nats"},
                   {"largest_kl", "largest", "nats"},
                   {"argmax_differs", "argmax differs", "steps"},
                   {"largest_flip_margin", "largest margin there", "logits"},
                   {"kl_apart", "KL, two texts", "nats"}};
  table.notes = {
      "KL, same tokens: both fed the tokens of the text with the cache",
      "KL, two texts: after they have parted; it compares two sentences and no arithmetic"};
  return table;
}

class Behaviour : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> Behaviour::units(const StudySetup& setup) const {
  std::vector<StudyUnit> list;
  const std::vector<std::uint64_t> once{0};
  for (const Strategy& strategy : setup.strategies) {
    for (const std::uint64_t seed : strategy.is_random() ? setup.seeds : once) {
      for (std::int64_t prompt = 0; prompt < std::ssize(setup.prompts); ++prompt) {
        const auto& ids = setup.prompts[static_cast<std::size_t>(prompt)].prompt.ids;
        list.push_back({strategy.name, prompt, seed, 2 * (std::ssize(ids) + setup.new_tokens)});
      }
    }
  }
  return list;
}

Result<Json> Behaviour::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const auto strategy = std::ranges::find(setup.strategies, unit.part, &Strategy::name);
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  PairTextOptions options{.sampling = strategy->sampling,
                          .prompt_number = static_cast<std::uint64_t>(prompt.prompt.number),
                          .new_tokens = setup.new_tokens,
                          .stop_tokens = stops};
  options.sampling.seed = unit.seed;
  const Result<PairText> pair = compare_texts(*on, *off, prompt.prompt.ids, options);
  if (!pair) return pair.error();
  const std::optional<std::int64_t>& flip = pair->flip;
  Json apart = Json::array();
  for (const double kl : pair->kl_apart) apart.push_back(json_of(kl));
  return Json{{"on", text_of(pair->first_tokens, setup)},
              {"off", text_of(pair->second_tokens, setup)},
              {"answer", prompt.answer},
              {"flip", flip ? Json(*flip) : Json(nullptr)},
              {"forced", steps_of(pair->forced)},
              {"kl_apart", std::move(apart)}};
}

Result<StudySummary> Behaviour::summarize(const StudyRecords& records) const {
  std::vector<std::string> order;
  std::map<std::string, StrategyFigures, std::less<>> figures;
  for (const StudyRecords::Unit& unit : records.units) {
    if (!figures.contains(unit.unit.part)) order.push_back(unit.unit.part);
    figures[unit.unit.part].add(unit.values);
  }
  StudySummary summary;
  SummaryTable table = strategies_table();
  std::int64_t texts = 0;
  std::int64_t diverged = 0;
  for (const std::string& name : order) {
    const StrategyFigures& all = figures.find(name)->second;
    const auto share = statistics::wilson_interval({std::ssize(all.flips), all.texts});
    if (!share) return share.error();
    texts += all.texts;
    diverged += std::ssize(all.flips);
    const std::optional<double> median = median_of(all.flips);
    table.rows.push_back({cell(name), cell(all.texts), percent_cell(*share), cell(median),
                          cell(mean_of(all.kl)), cell(all.largest_kl), cell(all.argmax_differs),
                          cell(all.largest_flip_margin), cell(mean_of(all.kl_apart))});
    summary.result[name] = {{"texts", all.texts},
                            {"diverged", json_of(*share)},
                            {"median_flip", json_of(median)},
                            {"kl", json_of(mean_of(all.kl))},
                            {"js", json_of(mean_of(all.js))},
                            {"largest_kl", json_of(all.largest_kl)},
                            {"argmax_differs", all.argmax_differs},
                            {"largest_flip_margin", all.largest_flip_margin},
                            {"kl_apart", json_of(mean_of(all.kl_apart))}};
  }
  summary.headline =
      fmt::format("{} of {} texts part with and without the cache.", diverged, texts);
  summary.tables.push_back(std::move(table));
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_behaviour() { return std::make_unique<Behaviour>(); }

}  // namespace kvsim::experiments
