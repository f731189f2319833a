// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/behaviour.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/metrics/plateau.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/protocol/step_json.h"
#include "experiments/protocol/unrelated_texts.h"
#include "experiments/studies/behaviour_figures.h"
#include "experiments/studies/behaviour_tables.h"
#include "experiments/tables.h"
#include "experiments/work.h"

namespace kvsim::experiments {
namespace {

Json text_of(const std::vector<std::int64_t>& tokens, const StudySetup& setup) {
  Json text = {{"tokens", tokens}};
  if (!setup.decode) return text;
  const std::vector<TokenId> ids(tokens.begin(), tokens.end());
  text["text"] = setup.decode(ids);
  return text;
}

/// Sattolo's cycle through the prompts is drawn under it.
constexpr std::uint64_t partner_seed = 1;

class Behaviour : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

/// Its texts say something about a strategy once, whatever the seeds, where it draws no numbers.
std::vector<std::uint64_t> seeds_of(const Strategy& strategy, const StudySetup& setup) {
  return strategy.is_random() ? setup.seeds : std::vector<std::uint64_t>{0};
}

Result<std::vector<StudyUnit>> Behaviour::units(const StudySetup& setup) const {
  std::vector<StudyUnit> list;
  const std::int64_t prompts = std::ssize(setup.prompts);
  Result<TextGroup> texts =
      TextGroup::of(*setup.engine, std::array{setup.on, setup.off}, setup.new_tokens);
  if (!texts) return texts.error();
  std::vector<std::int64_t> pairs;
  std::vector<std::int64_t> unrelated;  // as if the partner were as long: right for the sum of all
  for (std::int64_t prompt = 0; prompt < prompts; ++prompt) {
    const std::int64_t length = prompt_tokens(setup, prompt);
    const Result<std::int64_t> both = texts->work(length);
    if (!both) return both.error();
    pairs.push_back(*both);
    const Result<std::int64_t> one = texts->arms.front().text(length, setup.new_tokens);
    if (!one) return one.error();
    unrelated.push_back(2 * *one);
  }
  for (const Strategy& strategy : setup.strategies) {
    const std::vector<std::uint64_t> seeds = seeds_of(strategy, setup);
    for (const std::uint64_t seed : seeds) {
      for (std::int64_t prompt = 0; prompt < prompts; ++prompt) {
        list.push_back({strategy.name, prompt, seed, pairs[static_cast<std::size_t>(prompt)]});
      }
    }
    for (std::int64_t prompt = 0; prompt < prompts && prompts > 1; ++prompt) {
      list.push_back({fmt::format("{}{}", strategy.name, unrelated_suffix), prompt, seeds.front(),
                      unrelated[static_cast<std::size_t>(prompt)]});
    }
  }
  return list;
}

/// The two texts of a prompt.
Result<Json> pair_of(const StudySetup& setup, const StudyPrompt& prompt,
                     const PairTextOptions& options) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const Result<PairText> pair = compare_texts(*on, *off, prompt.prompt.ids, options);
  if (!pair) return pair.error();
  const std::optional<std::int64_t>& flip = pair->flip;
  const auto list = [](const std::vector<double>& numbers) {
    Json array = Json::array();
    for (const double number : numbers) array.push_back(json_of(number));
    return array;
  };
  return Json{{"on", text_of(pair->first_tokens, setup)},
              {"off", text_of(pair->second_tokens, setup)},
              {"answer", prompt.answer},
              {"flip", flip ? Json(*flip) : Json(nullptr)},
              {"forced", steps_json(pair->forced)},
              {"kl_apart", list(pair->kl_apart)},
              {"js_apart", list(pair->js_apart)}};
}

/// The text of a prompt with the cache against that of another prompt.
Result<Json> unrelated_of(const StudySetup& setup, std::int64_t prompt,
                          const PairTextOptions& options) {
  const auto partners = metrics::unrelated_partners(std::ssize(setup.prompts), partner_seed);
  if (!partners) return partners.error();
  const std::int64_t partner = (*partners)[static_cast<std::size_t>(prompt)];
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const auto numbered = [&](std::int64_t index) -> const RunPrompt& {
    return setup.prompts[static_cast<std::size_t>(index)].prompt;
  };
  const auto kl = unrelated_divergence(*on, numbered(prompt), numbered(partner), options);
  if (!kl) return kl.error();
  Json list = Json::array();
  for (const double nats : *kl) list.push_back(json_of(nats));
  return Json{{"with", numbered(partner).number}, {"kl", std::move(list)}};
}

Result<Json> Behaviour::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const bool is_unrelated = unit.part.ends_with(unrelated_suffix);
  const std::string_view name = std::string_view(unit.part).substr(
      0, unit.part.size() - (is_unrelated ? unrelated_suffix.size() : 0));
  const auto strategy = std::ranges::find(setup.strategies, name, &Strategy::name);
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  PairTextOptions options{.sampling = strategy->sampling,
                          .prompt_number = static_cast<std::uint64_t>(prompt.prompt.number),
                          .new_tokens = setup.new_tokens,
                          .stop_tokens = stops};
  options.sampling.seed = unit.seed;
  return is_unrelated ? unrelated_of(setup, unit.prompt, options) : pair_of(setup, prompt, options);
}

Result<StudySummary> Behaviour::summarize(const StudyRecords& records) const {
  return behaviour_summary(behaviour_figures(records));
}

}  // namespace

std::unique_ptr<Study> make_behaviour() { return std::make_unique<Behaviour>(); }

}  // namespace kvsim::experiments
