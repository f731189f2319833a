// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metrics/token_divergence.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/studies/localise_parts.h"
#include "experiments/studies/localise_patches.h"
#include "experiments/tables.h"
#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

/// A text from the first decode step on: the logits of each step, and the token chosen there.
struct Steps {
  std::vector<std::vector<double>> logits;
  std::vector<std::int64_t> tokens;
};

struct StepOptions {
  std::int64_t steps = localise_steps;
  std::span<const std::int64_t> stop_tokens = {};
};

/// Goes on behind a pass that was made. `forced`: tokens to feed instead of the chosen ones, as
/// many steps as they are.
Result<Steps> go_on(ArmSequence sequence, EnginePass pass, const StepOptions& options,
                    const std::vector<std::int64_t>* forced) {
  const std::int64_t count = forced != nullptr ? std::ssize(*forced) : options.steps;
  Steps steps;
  for (std::int64_t step = 0;;) {
    const std::int64_t chosen = argmax_of(pass.logits);
    steps.logits.push_back(std::move(pass.logits));
    steps.tokens.push_back(chosen);
    const std::int64_t fed = forced != nullptr ? (*forced)[static_cast<std::size_t>(step)] : chosen;
    const auto& stops = options.stop_tokens;
    if (++step == count || std::ranges::find(stops, fed) != stops.end()) return steps;
    sequence.feed(static_cast<TokenId>(fed));
    Result<EnginePass> next = sequence.next({});
    if (!next) return next.error();
    pass = std::move(*next);
  }
}

/// The mean KL of one text's steps from another's, over those that both have.
Result<double> mean_kl(const Steps& steps, const Steps& reference) {
  const std::size_t count = std::min(steps.logits.size(), reference.logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Result<Divergence> distance = divergence(steps.logits[i], reference.logits[i]);
    if (!distance) return distance.error();
    sum += distance->kl;
  }
  return sum / static_cast<double>(count);
}

/// The arm without the cache along the other arm's tokens, and along its own.
struct Reference {
  Steps forced;
  Steps free;
};

/// One text against both references; its own steps along the tokens of the text without a patch.
Result<Json> against(const Steps& forced, const Steps& free, const Reference& reference) {
  const Result<Divergence> step =
      divergence(forced.logits.front(), reference.forced.logits.front());
  if (!step) return step.error();
  const Result<double> same_tokens = mean_kl(forced, reference.forced);
  if (!same_tokens) return same_tokens.error();
  const Result<double> own_tokens = mean_kl(free, reference.free);
  if (!own_tokens) return own_tokens.error();
  const auto flip = metrics::token_divergence(free.tokens, reference.free.tokens).flip_index;
  return Json{{"step_kl", json_of(step->kl)},
              {"forced_kl", json_of(*same_tokens)},
              {"free_kl", json_of(*own_tokens)},
              {"flip", flip ? Json(*flip) : Json(nullptr)}};
}

/// The first decode step of one prompt.
class FirstStep {
 public:
  FirstStep(ArmSequence on, ArmSequence off, std::int64_t row, const StepOptions& options)
      : on_(std::move(on)), off_(std::move(off)), row_(row), options_(options) {}

  Result<Json> measure();

 private:
  /// The text behind the pass of a copy of the arm with the cache.
  Result<Steps> steps_of(const ArmSequence& before, const EnginePass& pass,
                         const std::vector<std::int64_t>* forced) const;
  Result<bool> find_references();
  Result<Json> patched(const NamedPatch& named) const;

  ArmSequence on_;   ///< before the step
  ArmSequence off_;  ///< before the step
  std::int64_t row_;
  StepOptions options_;
  EnginePass on_pass_;
  EnginePass off_pass_;
  Steps base_;  ///< of the arm with the cache, without a patch
  Reference reference_;
};

Result<Steps> FirstStep::steps_of(const ArmSequence& before, const EnginePass& pass,
                                  const std::vector<std::int64_t>* forced) const {
  Result<ArmSequence> copy = before.copy();
  if (!copy) return copy.error();
  return go_on(std::move(*copy), pass, options_, forced);
}

Result<bool> FirstStep::find_references() {
  Result<ArmSequence> on = on_.copy();
  if (!on) return on.error();
  Result<EnginePass> pass = on->next({.layer_values = true});
  if (!pass) return pass.error();
  on_pass_ = std::move(*pass);
  Result<Steps> base = steps_of(*on, on_pass_, nullptr);
  if (!base) return base.error();
  base_ = std::move(*base);

  pass = off_.next({.layer_values = true});
  if (!pass) return pass.error();
  off_pass_ = std::move(*pass);
  Result<Steps> forced = steps_of(off_, off_pass_, &base_.tokens);
  if (!forced) return forced.error();
  reference_.forced = std::move(*forced);
  Result<Steps> free = reference_.forced.tokens == base_.tokens
                           ? Result<Steps>(reference_.forced)
                           : steps_of(off_, off_pass_, nullptr);
  if (!free) return free.error();
  reference_.free = std::move(*free);
  return true;
}

Result<Json> FirstStep::patched(const NamedPatch& named) const {
  const EnginePass& donor = named.is_own ? on_pass_ : off_pass_;
  std::vector<HiddenReplacement> replaced;
  for (const StateValues& values : donor.values) {
    if (std::ranges::find(named.patch.hidden, values.layer) != named.patch.hidden.end()) {
      replaced.push_back({values.layer, row_, values.values});
    }
  }
  Result<ArmSequence> on = on_.copy();
  if (!on) return on.error();
  const Result<EnginePass> pass = on->next({.replaced = replaced});
  if (!pass) return pass.error();
  const Result<Steps> forced = steps_of(*on, *pass, &base_.tokens);
  if (!forced) return forced.error();
  Result<Json> numbers = Json();
  if (forced->tokens == base_.tokens) {
    numbers = against(*forced, *forced, reference_);
  } else {
    const Result<Steps> free = steps_of(*on, *pass, nullptr);
    if (!free) return free.error();
    numbers = against(*forced, *free, reference_);
  }
  if (!numbers) return numbers.error();
  (*numbers)["name"] = named.name;
  return numbers;
}

Result<Json> FirstStep::measure() {
  const Result<bool> found = find_references();
  if (!found) return found.error();
  Result<Json> base = against(base_, base_, reference_);
  if (!base) return base.error();
  const std::int64_t layers = on_.sequence().state_shape().layers;
  Json result = {{"steps", std::ssize(base_.tokens)}, {"layers", layers}, {"base", *base}};
  for (const NamedPatch& named : first_step_patches(layers)) {
    Result<Json> numbers = patched(named);
    if (!numbers) return numbers.error();
    result[named.group].push_back(std::move(*numbers));
  }
  return result;
}

/// The arm's text before its first decode step: the prompt's passes are made, one token is fed.
Result<ArmSequence> before_first_step(const StudyArm& arm, std::span<const TokenId> prompt,
                                      std::int64_t new_tokens, std::optional<TokenId>& token) {
  Result<ArmSequence> text = arm.open(prompt, new_tokens);
  if (!text) return text.error();
  const Result<EnginePass> pass = text->next({});
  if (!pass) return pass.error();
  if (!token) token = static_cast<TokenId>(argmax_of(pass->logits));
  text->feed(*token);
  return text;
}

}  // namespace

Result<Json> measure_first_step(const StudySetup& setup, const StudyPrompt& prompt) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const std::vector<TokenId>& ids = prompt.prompt.ids;
  std::optional<TokenId> token;  // of the arm with the cache, for both
  Result<ArmSequence> on_text = before_first_step(*on, ids, setup.new_tokens, token);
  if (!on_text) return on_text.error();
  Result<ArmSequence> off_text = before_first_step(*off, ids, setup.new_tokens, token);
  if (!off_text) return off_text.error();
  const auto passes = next_passes(setup.on, std::ssize(ids), 0);
  if (!passes) return passes.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const StepOptions options{std::min(localise_steps, setup.new_tokens - 1), stops};
  return FirstStep(std::move(*on_text), std::move(*off_text), passes->back().rows - 1, options)
      .measure();
}

}  // namespace kvsim::experiments
