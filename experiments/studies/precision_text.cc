// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/precision_text.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "experiments/protocol/pair_text.h"
#include "experiments/statistics/distributions.h"
#include "run/divergence.h"
#include "run/margin.h"

namespace kvsim::experiments {
namespace {

/// What a step gives.
struct Choice {
  std::int64_t base = 0;
  std::int64_t head = 0;
  double margin_ulps = 0;
  std::int64_t token = 0;  ///< the one of the two that counts
  std::vector<double> logits;
};

bool is_stop(const PrecisionOptions& options, std::int64_t token) {
  return std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end();
}

/// The sequence, or both.
class Sequences {
 public:
  static Result<Sequences> open(const PrecisionArms& arms, std::span<const TokenId> prompt,
                                std::int64_t new_tokens) {
    Sequences result(arms);
    for (const StudyArm* arm : {arms.base, arms.head}) {
      if (arm == nullptr) continue;
      Result<ArmSequence> opened = arm->open(prompt, new_tokens);
      if (!opened) return opened.error();
      result.all_.push_back(std::move(*opened));
    }
    return result;
  }

  [[nodiscard]] Result<Sequences> copy() const {
    Sequences result(arms_);
    for (const ArmSequence& each : all_) {
      Result<ArmSequence> copied = each.copy();
      if (!copied) return copied.error();
      result.all_.push_back(std::move(*copied));
    }
    return result;
  }

  void feed(std::int64_t token) {
    for (ArmSequence& each : all_) each.feed(static_cast<TokenId>(token));
  }

  Result<Choice> next() {
    Result<EnginePass> base = all_.front().next({});
    if (!base) return base.error();
    Choice choice;
    const std::vector<TokenLogit> top = largest_logits(base->logits, 2);
    choice.base = choice.token = top.front().token;
    choice.margin_ulps =
        margin(arms_.base->engine->logit_format(), top.front().logit, top.back().logit).ulps;
    choice.logits = std::move(base->logits);
    if (all_.size() < 2) return choice;
    Result<EnginePass> head = all_.back().next({});
    if (!head) return head.error();
    choice.head = argmax_of(head->logits);
    if (choice.margin_ulps > arms_.margin_ulps) return choice;
    choice.token = choice.head;
    choice.logits = std::move(head->logits);
    return choice;
  }

 private:
  explicit Sequences(const PrecisionArms& arms) : arms_(arms) { all_.reserve(2); }

  PrecisionArms arms_;
  std::vector<ArmSequence> all_;
};

class TextRun {
 public:
  TextRun(const PrecisionOptions& options, const ReferenceText& reference, Sequences forced)
      : options_(options), reference_(reference), forced_(std::move(forced)) {}

  Result<PrecisionText> carry_out(bool has_head);

 private:
  /// Adds to its own text.
  Result<bool> add(const Choice& choice) {
    const Result<SoftmaxNormalizer> normalizer = softmax_normalizer(choice.logits);
    if (!normalizer) return normalizer.error();
    text_.tokens.push_back(choice.token);
    text_.top1.push_back(
        statistics::exponential(log_probability(*normalizer, normalizer->largest)));
    ended_ = is_stop(options_, choice.token);
    return true;
  }
  Result<bool> forced_step(std::size_t step, bool has_head);
  Result<bool> go_apart();

  const PrecisionOptions& options_;
  const ReferenceText& reference_;
  Sequences forced_;
  std::optional<Sequences> apart_;  ///< along its own text, where that is another one
  bool ended_ = false;              ///< its own text
  PrecisionText text_;
};

Result<bool> TextRun::forced_step(std::size_t step, bool has_head) {
  const Result<Choice> choice = forced_.next();
  if (!choice) return choice.error();
  const Result<Divergence> distance = divergence(reference_.logits[step], choice->logits);
  if (!distance) return distance.error();
  text_.base.push_back(choice->base);
  if (has_head) text_.head.push_back(choice->head);
  text_.margin_ulps.push_back(choice->margin_ulps);
  text_.kl.push_back(distance->kl);
  const std::int64_t token = reference_.tokens[step];
  if (!apart_ && !ended_) {
    if (const Result<bool> added = add(*choice); !added) return added;
    if (choice->token != token && !ended_) {
      Result<Sequences> copied = forced_.copy();
      if (!copied) return copied.error();
      apart_.emplace(std::move(*copied)).feed(choice->token);
    }
  }
  forced_.feed(token);
  return true;
}

Result<bool> TextRun::go_apart() {
  std::optional<Sequences>& apart = apart_;
  if (!apart) return true;
  while (!ended_ && std::ssize(text_.tokens) < options_.new_tokens) {
    const Result<Choice> choice = apart->next();
    if (!choice) return choice.error();
    if (const Result<bool> added = add(*choice); !added) return added;
    apart->feed(choice->token);
  }
  return true;
}

Result<PrecisionText> TextRun::carry_out(bool has_head) {
  for (std::size_t step = 0; step < reference_.tokens.size(); ++step) {
    if (const Result<bool> done = forced_step(step, has_head); !done) return done.error();
  }
  if (const Result<bool> done = go_apart(); !done) return done.error();
  return std::move(text_);
}

}  // namespace

Result<ReferenceText> reference_text(const StudyArm& arm, std::span<const TokenId> prompt,
                                     const PrecisionOptions& options) {
  Result<ArmSequence> sequence = arm.open(prompt, options.new_tokens);
  if (!sequence) return sequence.error();
  ReferenceText text;
  while (std::ssize(text.tokens) < options.new_tokens) {
    Result<EnginePass> pass = sequence->next({});
    if (!pass) return pass.error();
    text.tokens.push_back(argmax_of(pass->logits));
    text.logits.push_back(std::move(pass->logits));
    if (is_stop(options, text.tokens.back())) break;
    sequence->feed(static_cast<TokenId>(text.tokens.back()));
  }
  return text;
}

Result<PrecisionText> precision_text(const PrecisionArms& arms, std::span<const TokenId> prompt,
                                     const ReferenceText& reference,
                                     const PrecisionOptions& options) {
  Result<Sequences> forced = Sequences::open(arms, prompt, options.new_tokens);
  if (!forced) return forced.error();
  return TextRun(options, reference, std::move(*forced)).carry_out(arms.head != nullptr);
}

}  // namespace kvsim::experiments
