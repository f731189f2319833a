// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/prompt_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "model/quote.h"
#include "run/arm_sequence.h"
#include "run/divergence.h"

namespace kvsim {
namespace {

/// One arm while its prompt runs.
struct ArmState {
  ArmSequence text;
  std::vector<double> logits;  ///< of the current step
  std::int64_t token = 0;      ///< chosen at the current step
  bool is_running = true;
  bool has_first_context = true;  ///< it was fed what the first arm was fed
};

class PromptRun {
 public:
  PromptRun(const PreparedRun& run, std::size_t index, const PromptOutput& output)
      : run_(run), index_(index), prompt_(run.prompts()[index]), output_(output) {}

  Result<std::vector<char>> carry_out();

 private:
  Result<bool> open();
  Result<bool> step_of_arm(std::size_t arm);
  Result<EnginePass> compute(std::size_t arm);
  Result<bool> compare(std::size_t other);
  void feed();

  [[nodiscard]] std::int64_t prompt_tokens() const { return std::ssize(prompt_.ids); }
  [[nodiscard]] const std::string& label(std::size_t arm) const {
    return run_.arms()[arm].arm.label;
  }
  [[nodiscard]] Error at_step(std::size_t arm, const Error& error) const {
    return {error.kind, fmt::format("prompt {}, arm {}, step {}: {}", prompt_.number,
                                    quote(label(arm)), step_, error.message)};
  }

  const PreparedRun& run_;
  std::size_t index_;
  const RunPrompt& prompt_;
  const PromptOutput& output_;
  std::vector<ArmState> arms_;
  std::int64_t step_ = 0;
};

Result<bool> PromptRun::open() {
  for (std::size_t arm = 0; arm < run_.arms().size(); ++arm) {
    const PreparedArm& prepared = run_.arms()[arm];
    Result<ArmSequence> text =
        ArmSequence::open(*prepared.engine, prepared.arm, prompt_.ids,
                          run_.options().max_new_tokens, prepared.launch_of(prompt_tokens()));
    if (!text) return at_step(arm, text.error());
    arms_.push_back({.text = std::move(*text), .logits = {}});
  }
  return true;
}

Result<EnginePass> PromptRun::compute(std::size_t arm) {
  return arms_[arm].text.next({.state_digests = run_.options().state_digests,
                               .layer_digests = run_.options().layer_digests,
                               .state_values = output_.run->dump_state,
                               .layer_values = output_.run->dump_layers});
}

Result<bool> PromptRun::step_of_arm(std::size_t arm) {
  Result<EnginePass> pass = compute(arm);
  if (!pass) return at_step(arm, pass.error());
  ArmState& state = arms_[arm];
  state.logits = std::move(pass->logits);
  const Result<std::int64_t> token =
      sample_token(state.logits, run_.options().sampling,
                   static_cast<std::uint64_t>(prompt_.number), static_cast<std::uint64_t>(step_));
  if (!token) return at_step(arm, token.error());
  state.token = *token;
  Result<RecordedLogits> recorded =
      recorded_logits(state.logits, *token, run_.arms()[arm].engine->logit_format());
  if (!recorded) return at_step(arm, recorded.error());

  StepRecord record;
  record.prompt = prompt_.number;
  record.arm = label(arm);
  record.step = step_;
  record.token = *token;
  record.logprob = recorded->logprob;
  record.top = std::move(recorded->top);
  record.margin = recorded->margin;
  record.digests = std::move(pass->digests);
  record.digests.token = digest_of(std::span<const double>(state.logits));
  record.cost = pass->cost;
  if (output_.run->dump) {
    const Result<bool> dumped = output_.run->dump(
        {prompt_.number, arm, step_, std::span(state.logits), std::span(pass->values)});
    if (!dumped) return dumped.error();
  }
  return output_.line(std::move(record));
}

Result<bool> PromptRun::compare(std::size_t other) {
  const std::vector<double>& p = arms_.front().logits;
  const std::vector<double>& q = arms_[other].logits;
  const Result<Divergence> distance = divergence(p, q);
  if (!distance) return at_step(other, distance.error());
  ComparisonRecord record;
  record.prompt = prompt_.number;
  record.first = label(0);
  record.second = label(other);
  record.step = step_;
  record.same_context = arms_[other].has_first_context;
  if (std::isfinite(distance->kl)) record.kl = distance->kl;
  record.js = distance->js;
  const LogitDifference difference = logit_difference(p, q);
  record.differing_logits = difference.differing;
  record.largest_logit_difference = difference.largest;
  record.top_two_error = top_two_error(p, q);
  return output_.line(std::move(record));
}

void PromptRun::feed() {
  const std::vector<std::int64_t>& stops = run_.stop_tokens();
  const std::int64_t forced = arms_.front().token;
  for (ArmState& state : arms_) {
    if (!state.is_running) continue;
    const std::int64_t token = run_.options().teacher_forced ? forced : state.token;
    state.text.feed(static_cast<TokenId>(token));
    state.has_first_context = state.has_first_context && token == forced;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) state.is_running = false;
  }
}

Result<std::vector<char>> PromptRun::carry_out() {
  if (const Result<bool> opened = open(); !opened) return opened.error();
  if (const Result<bool> done = output_.line(run_.head_line(index_)); !done) return done.error();
  const auto is_running = [](const ArmState& arm) { return arm.is_running; };
  for (; step_ < run_.options().max_new_tokens; ++step_) {
    if (std::none_of(arms_.begin(), arms_.end(), is_running) || output_.is_cancelled()) break;
    for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
      if (!arms_[arm].is_running) continue;
      if (const Result<bool> done = step_of_arm(arm); !done) return done.error();
    }
    for (std::size_t other = 1; other < arms_.size(); ++other) {
      if (!arms_.front().is_running || !arms_[other].is_running) continue;
      if (const Result<bool> done = compare(other); !done) return done.error();
    }
    feed();
    output_.step_done();
  }
  std::vector<char> bounded;
  bounded.reserve(arms_.size());
  for (const ArmState& arm : arms_) bounded.push_back(arm.text.exp_bounded() ? 1 : 0);
  return bounded;
}

}  // namespace

Result<std::vector<char>> run_prompt(const PreparedRun& run, std::size_t index,
                                     const PromptOutput& output) {
  return PromptRun(run, index, output).carry_out();
}

}  // namespace kvsim
