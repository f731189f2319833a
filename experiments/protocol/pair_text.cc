// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/pair_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

/// Of the two largest logits; nothing where fewer than two are finite.
std::optional<Margin> margin_of(const softfloat::Format& format, std::span<const double> logits) {
  const std::vector<TokenLogit> top = largest_logits(logits, 2);
  if (top.size() < 2 || !std::isfinite(top[0].logit) || !std::isfinite(top[1].logit)) return {};
  return margin(format, top[0].logit, top[1].logit);
}

class PairRun {
 public:
  PairRun(ArmSequence first, ArmSequence second, const softfloat::Format& format,
          const PairTextOptions& options)
      : first_(std::move(first)), second_(std::move(second)), format_(format), options_(options) {}

  Result<PairText> carry_out();

 private:
  [[nodiscard]] Result<std::int64_t> choose(std::span<const double> logits,
                                            std::int64_t step) const {
    return sample_token(logits, options_.sampling, options_.prompt_number,
                        static_cast<std::uint64_t>(step));
  }
  [[nodiscard]] bool is_stop(std::int64_t token) const {
    return std::ranges::find(options_.stop_tokens, token) != options_.stop_tokens.end();
  }
  Result<bool> forced_step(std::int64_t step);
  Result<bool> part(std::int64_t step, std::int64_t token);
  Result<bool> step_apart(std::int64_t step);

  ArmSequence first_;
  ArmSequence second_;                ///< along the first one's tokens
  std::optional<ArmSequence> apart_;  ///< the second along its own, after the flip
  softfloat::Format format_;
  const PairTextOptions& options_;
  std::vector<double> first_logits_;
  bool first_runs_ = true;
  bool second_runs_ = true;  ///< along its own tokens
  PairText text_;
};

/// From here on the second arm goes its own way, too.
Result<bool> PairRun::part(std::int64_t step, std::int64_t token) {
  text_.flip = step;
  if (!options_.follows_apart) {
    second_runs_ = false;
    return true;
  }
  Result<ArmSequence> copied = second_.copy();
  if (!copied) return copied.error();
  apart_ = std::move(*copied);
  apart_->feed(static_cast<TokenId>(token));
  return true;
}

Result<bool> PairRun::forced_step(std::int64_t step) {
  Result<EnginePass> first = first_.next({});
  if (!first) return first.error();
  const Result<EnginePass> second = second_.next({});
  if (!second) return second.error();
  Result<ForcedStep> compared = compare_logits(first->logits, second->logits, format_);
  if (!compared) return compared.error();
  text_.forced.push_back(*compared);
  const Result<std::int64_t> token = choose(first->logits, step);
  if (!token) return token.error();
  text_.first_tokens.push_back(*token);
  if (!text_.flip) {
    const Result<std::int64_t> other = choose(second->logits, step);
    if (!other) return other.error();
    text_.second_tokens.push_back(*other);
    second_runs_ = !is_stop(*other);
    if (*other != *token) {
      if (const Result<bool> parted = part(step, *other); !parted) return parted;
    }
  }
  first_logits_ = std::move(first->logits);
  first_.feed(static_cast<TokenId>(*token));
  second_.feed(static_cast<TokenId>(*token));
  first_runs_ = !is_stop(*token);
  return true;
}

Result<bool> PairRun::step_apart(std::int64_t step) {
  if (!apart_) return true;
  ArmSequence& own = *apart_;
  const Result<EnginePass> second = own.next({});
  if (!second) return second.error();
  if (std::ssize(text_.forced) > step) {  // the first arm made this step, too
    const Result<Divergence> distance = divergence(first_logits_, second->logits);
    if (!distance) return distance.error();
    text_.kl_apart.push_back(distance->kl);
    text_.js_apart.push_back(distance->js);
  }
  const Result<std::int64_t> token = choose(second->logits, step);
  if (!token) return token.error();
  text_.second_tokens.push_back(*token);
  second_runs_ = !is_stop(*token);
  own.feed(static_cast<TokenId>(*token));
  return true;
}

Result<PairText> PairRun::carry_out() {
  for (std::int64_t step = 0; step < options_.new_tokens; ++step) {
    const bool goes_apart = apart_ && second_runs_;  // before this step could part them
    if (!first_runs_ && !goes_apart) break;
    if (first_runs_) {
      if (const Result<bool> done = forced_step(step); !done) return done.error();
    }
    if (goes_apart) {
      if (const Result<bool> done = step_apart(step); !done) return done.error();
    }
  }
  return std::move(text_);
}

}  // namespace

std::int64_t argmax_of(std::span<const double> logits) {
  return std::ranges::max_element(logits) - logits.begin();
}

Result<ForcedStep> compare_logits(std::span<const double> first, std::span<const double> second,
                                  const softfloat::Format& format) {
  const Result<Divergence> distance = divergence(first, second);
  if (!distance) return distance.error();
  ForcedStep step;
  step.kl = distance->kl;
  step.js = distance->js;
  step.difference = logit_difference(first, second);
  step.first_argmax = argmax_of(first);
  step.second_argmax = argmax_of(second);
  step.first_margin = margin_of(format, first);
  step.second_margin = margin_of(format, second);
  step.top_two_error = top_two_error(first, second);
  return step;
}

Result<PairText> compare_texts(const StudyArm& first, const StudyArm& second,
                               std::span<const TokenId> prompt, const PairTextOptions& options) {
  Result<ArmSequence> one = first.open(prompt, options.new_tokens);
  if (!one) return one.error();
  Result<ArmSequence> two = second.open(prompt, options.new_tokens);
  if (!two) return two.error();
  return PairRun(std::move(*one), std::move(*two), first.engine->logit_format(), options)
      .carry_out();
}

}  // namespace kvsim::experiments
