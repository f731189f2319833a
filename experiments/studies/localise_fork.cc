// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/protocol/forks.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/protocol/transplant.h"
#include "experiments/studies/localise_parts.h"
#include "experiments/studies/localise_patches.h"
#include "experiments/tables.h"
#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

/// A cache, its pass, and where its text goes from there.
struct Side {
  const Fork& fork;
  const EnginePass& pass;
};

/// The tokens behind a fork that a pass was made from.
Result<std::vector<std::int64_t>> continuation_of(const Fork& fork, const EnginePass& pass) {
  Result<Fork> copy = fork.copy();
  if (!copy) return copy.error();
  return greedy_continuation(*copy, argmax_of(pass.logits), localise_follows);
}

Result<Json> measure_patch(const Side& donor, const Side& recipient, const NamedPatch& named) {
  const Side& giver = named.is_own ? recipient : donor;
  Result<PatchedPass> patched = patched_pass(giver.fork, giver.pass, recipient.fork, named.patch);
  if (!patched) return patched.error();
  const Result<Divergence> distance = divergence(patched->pass.logits, donor.pass.logits);
  if (!distance) return distance.error();
  const std::int64_t token = argmax_of(patched->pass.logits);
  Json numbers = {{"name", named.name}, {"kl", json_of(distance->kl)}, {"token", token}};
  if (named.continues) {
    const auto tokens = greedy_continuation(patched->fork, token, localise_follows);
    if (!tokens) return tokens.error();
    numbers["continuation"] = *tokens;
  }
  return numbers;
}

Result<Json> measure_direction(const Side& donor, const Side& recipient,
                               const std::vector<NamedPatch>& patches) {
  const Result<Divergence> base = divergence(recipient.pass.logits, donor.pass.logits);
  if (!base) return base.error();
  Json direction = {{"kl_base", json_of(base->kl)}};
  for (const NamedPatch& named : patches) {
    Result<Json> numbers = measure_patch(donor, recipient, named);
    if (!numbers) return numbers.error();
    direction[named.group].push_back(std::move(*numbers));
  }
  return direction;
}

/// In how many layers the keys, and the values, of the two caches are not equal.
Result<Json> differing_layers(const ForkPair& pair) {
  Json counts = Json::object();
  const StateShape shape = pair.live.sequence->state_shape();
  for (const auto& [name, part] : {std::pair{"K", KvPart::key}, std::pair{"V", KvPart::value}}) {
    std::int64_t differing = 0;
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      const StateBlock block{layer, part, 0, pair.live.cached_rows()};
      const auto ours = pair.live.sequence->state(block);
      if (!ours) return ours.error();
      const auto theirs = pair.rebuilt.sequence->state(block);
      if (!theirs) return theirs.error();
      if (*ours != *theirs) ++differing;
    }
    counts[name] = differing;
  }
  return counts;
}

Result<Json> side_json(const Side& side) {
  const auto tokens = continuation_of(side.fork, side.pass);
  if (!tokens) return tokens.error();
  return Json{{"token", argmax_of(side.pass.logits)}, {"continuation", *tokens}};
}

Result<Json> measure_pair(const ForkPair& pair, std::int64_t prompt_rows) {
  const Side live{pair.live, pair.live_pass};
  const Side rebuilt{pair.rebuilt, pair.rebuilt_pass};
  const StateShape shape = pair.live.sequence->state_shape();
  const auto patches = fork_patches(shape, prompt_rows, pair.live.cached_rows());
  Json fork = {{"step", pair.step},          {"tried", pair.tried},
               {"prompt_rows", prompt_rows}, {"cached_rows", pair.live.cached_rows()},
               {"layers", shape.layers},     {"parts", pair.parts()}};
  const auto put = [&fork](const char* name, Result<Json> value) -> std::optional<Error> {
    if (!value) return value.error();
    fork[name] = std::move(*value);
    return {};
  };
  std::optional<Error> error = put("differing_layers", differing_layers(pair));
  if (!error) error = put("live", side_json(live));
  if (!error) error = put("one_shot", side_json(rebuilt));
  if (!error) error = put("live_takes", measure_direction(rebuilt, live, patches));
  if (!error) error = put("one_shot_takes", measure_direction(live, rebuilt, patches));
  if (error) return *error;
  return fork;
}

}  // namespace

Result<Json> measure_fork(const StudySetup& setup, const StudyPrompt& prompt) {
  const Result<StudyArm> live = prepare(*setup.engine, setup.on);
  if (!live) return live.error();
  const Result<StudyArm> rebuilt = prepare(*setup.engine, one_shot_arm(setup.off));
  if (!rebuilt) return rebuilt.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const auto pair =
      find_fork(*live, *rebuilt, prompt.prompt.ids,
                {.new_tokens = setup.new_tokens, .stop_tokens = stops, .room = localise_follows});
  if (!pair) return pair.error();
  const std::optional<ForkPair>& found = *pair;
  if (!found) return Json{{"fork", nullptr}};
  Result<Json> fork = measure_pair(*found, std::ssize(prompt.prompt.ids));
  if (!fork) return fork.error();
  return Json{{"fork", std::move(*fork)}};
}

}  // namespace kvsim::experiments
