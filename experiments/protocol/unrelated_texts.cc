// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/unrelated_texts.h"

#include <algorithm>
#include <utility>

#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

/// One of the two texts.
class OwnText {
 public:
  OwnText(ArmSequence sequence, std::uint64_t prompt_number, const PairTextOptions& options)
      : sequence_(std::move(sequence)), prompt_number_(prompt_number), options_(options) {}

  /// The logits of the next token, which is then chosen and fed.
  Result<std::vector<double>> next(std::int64_t step) {
    Result<EnginePass> pass = sequence_.next({});
    if (!pass) return pass.error();
    const Result<std::int64_t> token = sample_token(pass->logits, options_.sampling, prompt_number_,
                                                    static_cast<std::uint64_t>(step));
    if (!token) return token.error();
    sequence_.feed(static_cast<TokenId>(*token));
    has_ended_ = std::ranges::find(options_.stop_tokens, *token) != options_.stop_tokens.end();
    return std::move(pass->logits);
  }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  ArmSequence sequence_;
  std::uint64_t prompt_number_;
  const PairTextOptions& options_;
  bool has_ended_ = false;
};

Result<OwnText> open(const StudyArm& arm, const RunPrompt& prompt, const PairTextOptions& options) {
  Result<ArmSequence> sequence = arm.open(prompt.ids, options.new_tokens);
  if (!sequence) return sequence.error();
  return OwnText(std::move(*sequence), static_cast<std::uint64_t>(prompt.number), options);
}

}  // namespace

Result<std::vector<double>> unrelated_divergence(const StudyArm& arm, const RunPrompt& first,
                                                 const RunPrompt& second,
                                                 const PairTextOptions& options) {
  Result<OwnText> one = open(arm, first, options);
  if (!one) return one.error();
  Result<OwnText> two = open(arm, second, options);
  if (!two) return two.error();
  std::vector<double> divergences;
  for (std::int64_t step = 0; step < options.new_tokens; ++step) {
    if (one->has_ended() || two->has_ended()) break;
    const Result<std::vector<double>> p = one->next(step);
    if (!p) return p.error();
    const Result<std::vector<double>> q = two->next(step);
    if (!q) return q.error();
    const Result<Divergence> distance = divergence(*p, *q);
    if (!distance) return distance.error();
    divergences.push_back(distance->kl);
  }
  return divergences;
}

}  // namespace kvsim::experiments
