// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify_model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "experiments/metrics/drift.h"
#include "experiments/protocol/forced_drift.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

const StudyPrompt& prompt_of(const StudySetup& setup, const StudyUnit& unit) {
  return setup.prompts[static_cast<std::size_t>(unit.prompt)];
}

std::vector<std::int64_t> stops_of(const StudySetup& setup) {
  return setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
}

Result<std::vector<TextGroup>> one_group(const StudySetup& setup, std::span<const Arm> arms,
                                         std::int64_t steps) {
  Result<TextGroup> group = TextGroup::of(*setup.engine, arms, steps);
  if (!group) return group.error();
  std::vector<TextGroup> groups;
  groups.push_back(std::move(*group));
  return groups;
}

/// The arm with the cache, its prompt computed at once and token by token.
std::array<Arm, 2> cache_arms(const StudySetup& setup) {
  std::array<Arm, 2> arms{setup.on, setup.on};
  arms[0].constructor = CacheConstructor::one_shot;
  arms[1].constructor = CacheConstructor::all_token_wise;
  return arms;
}

/// The cache of a prompt as a constructor builds it with the settings of the arm with the cache.
Result<ArmSequence> built_cache(const StudyArm& arm, std::span<const TokenId> prompt) {
  Result<ArmSequence> text = arm.open(prompt, 1);
  if (!text) return text;
  if (const Result<EnginePass> pass = text->next({}); !pass) return pass.error();
  return text;
}

/// The keys or values of a layer in two caches.
Result<Json> compare_block(const EngineSequence& at_once, const EngineSequence& by_token,
                           const StateBlock& block) {
  const Result<std::vector<double>> one = at_once.state(block);
  if (!one) return one.error();
  const Result<std::vector<double>> two = by_token.state(block);
  if (!two) return two.error();
  const StateShape shape = at_once.state_shape();
  const Result<metrics::Drift> drift = metrics::drift(shape.format, *one, *two);
  if (!drift) return drift.error();
  std::int64_t rows = 0;
  const auto width = static_cast<std::size_t>(shape.head_dim);
  for (std::size_t first = 0; first < one->size(); first += width) {
    const auto from = static_cast<std::ptrdiff_t>(first);
    const bool equal =
        std::equal(one->begin() + from, one->begin() + from + static_cast<std::ptrdiff_t>(width),
                   two->begin() + from);
    rows += equal ? 0 : 1;
  }
  const auto all = static_cast<double>(one->size()) / static_cast<double>(shape.head_dim);
  return Json{
      {"relative", json_of(drift->relative.value_or(0))},
      {"rows", static_cast<double>(rows) / all},
      {"elements", static_cast<double>(drift->differing) / static_cast<double>(one->size())}};
}

}  // namespace

std::int64_t falsify_steps(const StudySetup& setup) {
  return std::min(setup.new_tokens, most_falsify_steps);
}

Result<std::vector<TextGroup>> layers_texts(const StudySetup& setup) {
  return one_group(setup, std::array{setup.on, setup.off}, falsify_steps(setup) + 1);
}

Result<Json> measure_layers(const StudySetup& setup, const StudyUnit& unit) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  ForcedDriftOptions options{.new_tokens = falsify_steps(setup) + 1};
  for (std::int64_t step = 1; step < options.new_tokens; ++step) {
    options.checkpoints.push_back(step);
  }
  const auto drift =
      forced_drift(*setup.engine, *on, *off, prompt_of(setup, unit).prompt.ids, options);
  if (!drift) return drift.error();
  Json values = {{"relative", Json::array()}, {"kl", Json::array()}};
  for (const DriftStep& step : drift->steps) {
    Json layers = Json::array();
    for (const LayerDrift& layer : step.layers) {
      layers.push_back(layer.all.relative.value_or(0));
    }
    values["relative"].push_back(std::move(layers));
    values["kl"].push_back(json_of(step.logits.kl));
  }
  return values;
}

Result<std::vector<TextGroup>> cache_texts(const StudySetup& setup) {
  return one_group(setup, cache_arms(setup), 1);
}

Result<Json> measure_cache(const StudySetup& setup, const StudyUnit& unit) {
  const auto& [at_once, by_token] = cache_arms(setup);
  const std::vector<TokenId>& prompt = prompt_of(setup, unit).prompt.ids;
  const Result<StudyArm> first_arm = prepare(*setup.engine, at_once);
  if (!first_arm) return first_arm.error();
  const Result<StudyArm> second_arm = prepare(*setup.engine, by_token);
  if (!second_arm) return second_arm.error();
  const Result<ArmSequence> one = built_cache(*first_arm, prompt);
  if (!one) return one.error();
  const Result<ArmSequence> two = built_cache(*second_arm, prompt);
  if (!two) return two.error();
  Json values = {{"key", Json::array()}, {"value", Json::array()}};
  const StateShape shape = one->sequence().state_shape();
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const auto& [name, part] :
         {std::pair{"key", KvPart::key}, std::pair{"value", KvPart::value}}) {
      Result<Json> compared =
          compare_block(one->sequence(), two->sequence(), {layer, part, 0, std::ssize(prompt)});
      if (!compared) return compared.error();
      values[name].push_back(std::move(*compared));
    }
  }
  return values;
}

Result<Json> measure_text(const StudySetup& setup, const StudyUnit& unit,
                          const Strategy& strategy) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const StudyPrompt& prompt = prompt_of(setup, unit);
  const std::vector<std::int64_t> stops = stops_of(setup);
  PairTextOptions options{.sampling = strategy.sampling,
                          .prompt_number = static_cast<std::uint64_t>(prompt.prompt.number),
                          .new_tokens = setup.new_tokens,
                          .stop_tokens = stops};
  options.sampling.seed = unit.seed;
  const Result<PairText> pair = compare_texts(*on, *off, prompt.prompt.ids, options);
  if (!pair) return pair.error();
  const std::optional<std::int64_t>& flip = pair->flip;
  Json values = {{"flip", flip ? Json(*flip) : Json(nullptr)},
                 {"forced", Json::array()},
                 {"apart", Json::array()}};
  for (const ForcedStep& step : pair->forced) values["forced"].push_back(json_of(step.kl));
  for (const double kl : pair->kl_apart) values["apart"].push_back(json_of(kl));
  return values;
}

Result<std::vector<TextGroup>> unrelated_texts(const StudySetup& setup) {
  return one_group(setup, std::array{setup.on, setup.on}, setup.new_tokens);
}

Result<Json> measure_unrelated(const StudySetup& setup, const StudyUnit& unit) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const std::size_t other = (static_cast<std::size_t>(unit.prompt) + 1) % setup.prompts.size();
  Result<ArmSequence> one = on->open(prompt_of(setup, unit).prompt.ids, setup.new_tokens);
  if (!one) return one.error();
  Result<ArmSequence> two = on->open(setup.prompts[other].prompt.ids, setup.new_tokens);
  if (!two) return two.error();
  const std::vector<std::int64_t> stops = stops_of(setup);
  Json steps = Json::array();
  for (std::int64_t step = 0; step < setup.new_tokens; ++step) {
    bool goes_on = true;
    std::vector<std::vector<double>> logits;
    for (ArmSequence* text : {&*one, &*two}) {
      Result<EnginePass> pass = text->next({});
      if (!pass) return pass.error();
      const std::int64_t token = argmax_of(pass->logits);
      text->feed(static_cast<TokenId>(token));
      goes_on = goes_on && std::ranges::find(stops, token) == stops.end();
      logits.push_back(std::move(pass->logits));
    }
    const Result<Divergence> distance = divergence(logits[0], logits[1]);
    if (!distance) return distance.error();
    steps.push_back(json_of(distance->kl));
    if (!goes_on) break;
  }
  return Json{{"kl", std::move(steps)}};
}

}  // namespace kvsim::experiments
