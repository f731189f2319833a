// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/forks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/protocol/pair_text.h"
#include "run/margin.h"

namespace kvsim::experiments {
namespace {

/// A step of the live arm's text, before its pass.
struct Candidate {
  double margin = 0;
  std::int64_t step = 0;
  ArmSequence before;
};

double margin_of(std::span<const double> logits) {
  const std::vector<TokenLogit> top = largest_logits(logits, 2);
  return top.size() < 2 ? HUGE_VAL : top[0].logit - top[1].logit;
}

/// Keeps the steps of the smallest margins, smallest first.
void keep_smallest(std::vector<Candidate>& kept, Candidate candidate, std::int64_t count) {
  kept.push_back(std::move(candidate));
  std::ranges::sort(kept, {},
                    [](const Candidate& each) { return std::tuple(each.margin, each.step); });
  if (std::ssize(kept) > count) kept.pop_back();
}

/// What is kept of a step of the live arm's text: the pass's margin, the step and what was before.
using KeepStep = std::function<void(Candidate)>;

/// Follows the greedy text; `takes` chooses the steps that are kept.
Result<bool> follow_text(const StudyArm& live, std::span<const TokenId> prompt,
                         const ForkOptions& options, const std::function<bool(std::int64_t)>& takes,
                         const KeepStep& keep) {
  Result<ArmSequence> text = live.open(prompt, options.new_tokens + options.room);
  if (!text) return text.error();
  for (std::int64_t step = 0; step < options.new_tokens; ++step) {
    std::optional<ArmSequence> before;
    if (step >= 2 && takes(step)) {
      Result<ArmSequence> copied = text->copy();
      if (!copied) return copied.error();
      before = std::move(*copied);
    }
    const Result<EnginePass> pass = text->next({});
    if (!pass) return pass.error();
    if (before) keep({margin_of(pass->logits), step, std::move(*before)});
    const std::int64_t token = argmax_of(pass->logits);
    if (std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end()) break;
    text->feed(static_cast<TokenId>(token));
  }
  return true;
}

Result<Fork> fork_of(const ArmSequence& sequence, std::span<const TokenId> tokens) {
  Result<std::unique_ptr<EngineSequence>> saved = sequence.sequence().save();
  if (!saved) return saved.error();
  return Fork{std::move(*saved), {tokens.begin(), tokens.end()}};
}

Result<ForkPair> fork_pair(const StudyArm& rebuilt, const Candidate& candidate,
                           const ForkOptions& options) {
  ForkPair pair;
  pair.step = candidate.step;
  Result<Fork> live = fork_of(candidate.before, candidate.before.tokens());
  if (!live) return live.error();
  pair.live = std::move(*live);
  const std::span<const TokenId> tokens = candidate.before.tokens();
  const auto prompt_tokens = static_cast<std::size_t>(candidate.before.prompt_tokens());
  Result<Fork> other = built_fork(rebuilt, tokens.first(prompt_tokens),
                                  tokens.subspan(prompt_tokens), options.new_tokens + options.room);
  if (!other) return other.error();
  pair.rebuilt = std::move(*other);
  Result<EnginePass> live_pass = pair.live.pass({.layer_values = true});
  if (!live_pass) return live_pass.error();
  pair.live_pass = std::move(*live_pass);
  Result<EnginePass> rebuilt_pass = pair.rebuilt.pass({.layer_values = true});
  if (!rebuilt_pass) return rebuilt_pass.error();
  pair.rebuilt_pass = std::move(*rebuilt_pass);
  return pair;
}

}  // namespace

Result<Fork> built_fork(const StudyArm& arm, std::span<const TokenId> prompt,
                        std::span<const TokenId> generated, std::int64_t room) {
  Result<ArmSequence> sequence = arm.open(prompt, room);
  if (!sequence) return sequence.error();
  for (const TokenId token : generated.first(generated.size() - 1)) sequence->feed(token);
  const Result<EnginePass> pass = sequence->next({});
  if (!pass) return pass.error();
  sequence->feed(generated.back());
  return fork_of(*sequence, sequence->tokens());
}

Arm one_shot_arm(const Arm& arm) {
  Arm result;
  result.constructor = CacheConstructor::one_shot;
  result.settings = arm.settings;
  result.label = to_text(result);
  return result;
}

bool ForkPair::parts() const {
  return argmax_of(live_pass.logits) != argmax_of(rebuilt_pass.logits);
}

Result<std::optional<ForkPair>> find_fork(const StudyArm& live, const StudyArm& rebuilt,
                                          std::span<const TokenId> prompt,
                                          const ForkOptions& options) {
  std::vector<Candidate> steps;
  const Result<bool> followed = follow_text(
      live, prompt, options, [](std::int64_t) { return true; },
      [&](Candidate candidate) { keep_smallest(steps, std::move(candidate), options.tries); });
  if (!followed) return followed.error();
  std::optional<ForkPair> best;
  std::int64_t tried = 0;
  for (const Candidate& candidate : steps) {
    Result<ForkPair> pair = fork_pair(rebuilt, candidate, options);
    if (!pair) return pair.error();
    ++tried;
    const auto differs = [](const ForkPair& each) {
      return each.live_pass.logits != each.rebuilt_pass.logits;
    };
    const bool parts = pair->parts();
    if (!best || parts || (differs(*pair) && !differs(*best))) best = std::move(*pair);
    if (parts) break;
  }
  if (best) best->tried = tried;
  return best;
}

std::vector<std::int64_t> even_steps(const ForkOptions& options) {
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 1; i <= options.tries; ++i) {
    const std::int64_t step =
        std::max<std::int64_t>(2, i * options.new_tokens / (options.tries + 1));
    if (step < options.new_tokens && (steps.empty() || steps.back() < step)) steps.push_back(step);
  }
  return steps;
}

Result<std::int64_t> fork_work(ArmWork& rebuilt, std::int64_t prompt_tokens, std::int64_t step) {
  const Result<std::int64_t> cache = rebuilt.cache(prompt_tokens, step - 1);
  if (!cache) return cache.error();
  return *cache + 2;
}

Result<std::vector<ForkPair>> even_forks(const StudyArm& live, const StudyArm& rebuilt,
                                         std::span<const TokenId> prompt,
                                         const ForkOptions& options) {
  const std::vector<std::int64_t> wanted = even_steps(options);
  std::vector<Candidate> steps;
  const Result<bool> followed = follow_text(
      live, prompt, options,
      [&](std::int64_t step) { return std::ranges::find(wanted, step) != wanted.end(); },
      [&](Candidate candidate) { steps.push_back(std::move(candidate)); });
  if (!followed) return followed.error();
  std::vector<ForkPair> forks;
  forks.reserve(steps.size());
  for (const Candidate& candidate : steps) {
    Result<ForkPair> pair = fork_pair(rebuilt, candidate, options);
    if (!pair) return pair.error();
    pair->tried = 1;
    forks.push_back(std::move(*pair));
  }
  return forks;
}

}  // namespace kvsim::experiments
