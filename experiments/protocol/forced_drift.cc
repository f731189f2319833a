// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/forced_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "experiments/protocol/attention_scores.h"
#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

constexpr std::string_view scores_name = "scores";
constexpr std::string_view weights_name = "weights";

/// The last output of that name of a layer; nothing where there is none.
const std::vector<double>* output_of(const EnginePass& pass, std::int64_t layer,
                                     std::string_view operation) {
  const std::vector<double>* found = nullptr;
  for (const StateValues& each : pass.values) {
    if (each.layer == layer && each.operation == operation) found = &each.values;
  }
  return found;
}

/// One arm's pass, with what attends in it.
struct Side {
  const EnginePass& pass;
  const EngineSequence& sequence;
};

class DriftRun {
 public:
  DriftRun(const Engine& engine, const StudyArm& first, const StudyArm& second,
           const ForcedDriftOptions& options)
      : engine_(engine), first_arm_(first), second_arm_(second), options_(options) {}

  Result<ForcedDrift> carry_out(std::span<const TokenId> prompt);

 private:
  [[nodiscard]] bool is_checkpoint(std::int64_t step) const {
    return std::ranges::find(options_.checkpoints, step) != options_.checkpoints.end();
  }
  [[nodiscard]] Result<metrics::Drift> drift_of(std::span<const double> a,
                                                std::span<const double> b) const {
    return metrics::drift(first_arm_.engine->activation_format(), a, b);
  }
  Result<std::int64_t> step(ArmSequence& first, ArmSequence& second, std::int64_t step);
  Result<bool> add_step(std::int64_t step, const Side& a, const Side& b);
  Result<std::vector<OperatorDrifts>> operators_of(const Side& a, const Side& b);
  Result<bool> add_scores(std::int64_t layer, const Side& a, const Side& b, OperatorDrifts& drifts);
  [[nodiscard]] Result<AttentionScores> scores_of(std::int64_t layer, const Side& side) const;

  const Engine& engine_;
  const StudyArm& first_arm_;
  const StudyArm& second_arm_;
  const ForcedDriftOptions& options_;
  std::int64_t rows_ = 0;  ///< of the caches behind the step at hand
  ForcedDrift result_;
};

Result<bool> DriftRun::add_step(std::int64_t step, const Side& a, const Side& b) {
  DriftStep added;
  added.step = step;
  result_.head_dim = a.sequence.state_shape().head_dim;
  const Result<ForcedStep> logits =
      compare_logits(a.pass.logits, b.pass.logits, first_arm_.engine->logit_format());
  if (!logits) return logits.error();
  added.logits = *logits;
  for (std::int64_t layer = 0;; ++layer) {
    const std::vector<double>* const x = output_of(a.pass, layer, "hidden");
    const std::vector<double>* const y = output_of(b.pass, layer, "hidden");
    if (x == nullptr || y == nullptr) break;
    const Result<metrics::Drift> all = drift_of(*x, *y);
    if (!all) return all.error();
    const metrics::WithoutMassive without = metrics::without_massive(*x, *y);
    const Result<metrics::Drift> rest = drift_of(without.a, without.b);
    if (!rest) return rest.error();
    added.layers.push_back({*all, *rest, without.massive});
  }
  if (options_.operators) {
    Result<std::vector<OperatorDrifts>> operators = operators_of(a, b);
    if (!operators) return operators.error();
    added.operators = std::move(*operators);
  }
  result_.steps.push_back(std::move(added));
  return true;
}

Result<AttentionScores> DriftRun::scores_of(std::int64_t layer, const Side& side) const {
  const Result<ScoreRule> rule = engine_.score_rule(layer);
  if (!rule) return rule.error();
  const std::vector<double>* const query = output_of(side.pass, layer, "query-rope");
  const std::vector<double>* const key = output_of(side.pass, layer, "key-rope");
  if (query == nullptr || key == nullptr) {
    return Error{ErrorKind::unavailable, "queries behind RoPE, by engine " + engine_.name()};
  }
  const Result<std::vector<double>> keys = side.sequence.state({layer, KvPart::key, 0, rows_});
  if (!keys) return keys.error();
  return attention_scores(*rule, side.sequence.state_shape(), *query, *keys);
}

Result<bool> DriftRun::add_scores(std::int64_t layer, const Side& a, const Side& b,
                                  OperatorDrifts& drifts) {
  const Result<AttentionScores> x = scores_of(layer, a);
  if (!x) return x.error();
  const Result<AttentionScores> y = scores_of(layer, b);
  if (!y) return y.error();
  const Result<metrics::Drift> scores = drift_of(x->scores, y->scores);
  if (!scores) return scores.error();
  const Result<metrics::Drift> weights = drift_of(x->weights, y->weights);
  if (!weights) return weights.error();
  drifts.operators.emplace(scores_name, *scores);
  drifts.operators.emplace(weights_name, *weights);
  for (std::int64_t head = 0; head < x->heads; ++head) {
    const Result<Divergence> distance = divergence(x->scores_of(head), y->scores_of(head));
    if (!distance) return distance.error();
    drifts.weights_kl.push_back(distance->kl);
  }
  return true;
}

Result<std::vector<OperatorDrifts>> DriftRun::operators_of(const Side& a, const Side& b) {
  std::vector<OperatorDrifts> list;
  for (std::int64_t layer = 0; output_of(a.pass, layer, "hidden") != nullptr; ++layer) {
    OperatorDrifts drifts;
    for (const DriftOperator& row : drift_operators()) {
      if (row.operation.empty()) continue;
      const std::vector<double>* const x = output_of(a.pass, layer, row.operation);
      const std::vector<double>* const y = output_of(b.pass, layer, row.operation);
      if (x == nullptr || y == nullptr) continue;
      const Result<metrics::Drift> found = drift_of(*x, *y);
      if (!found) return found.error();
      drifts.operators.emplace(row.name, *found);
    }
    const Result<bool> scored = add_scores(layer, a, b, drifts);
    if (!scored && scored.error().kind != ErrorKind::unavailable) return scored.error();
    if (!scored) result_.left_out = scored.error().message;
    list.push_back(std::move(drifts));
  }
  return list;
}

Result<std::int64_t> DriftRun::step(ArmSequence& first, ArmSequence& second, std::int64_t step) {
  const bool is_kept = is_checkpoint(step);
  const PassRequest request{.layer_values = is_kept,
                            .operator_values = is_kept && options_.operators};
  const Result<EnginePass> a = first.next(request);
  if (!a) return a.error();
  const std::int64_t token = argmax_of(a->logits);
  const Result<EnginePass> b = second.next(request);
  if (!b) return b.error();
  rows_ = std::ssize(first.tokens());
  if (!is_kept) return token;
  const Result<bool> done = add_step(step, {*a, first.sequence()}, {*b, second.sequence()});
  if (!done) return done.error();
  return token;
}

Result<ForcedDrift> DriftRun::carry_out(std::span<const TokenId> prompt) {
  Result<ArmSequence> first = first_arm_.open(prompt, options_.new_tokens);
  if (!first) return first.error();
  Result<ArmSequence> second = second_arm_.open(prompt, options_.new_tokens);
  if (!second) return second.error();
  std::int64_t made = 0;
  while (made < options_.new_tokens) {
    const Result<std::int64_t> token = step(*first, *second, made);
    if (!token) return token.error();
    ++made;
    first->feed(static_cast<TokenId>(*token));
    second->feed(static_cast<TokenId>(*token));
    if (std::ranges::find(options_.stop_tokens, *token) != options_.stop_tokens.end()) break;
  }
  result_.tokens = made;
  return std::move(result_);
}

}  // namespace

std::span<const DriftOperator> drift_operators() {
  static constexpr std::array<DriftOperator, 8> rows{{{"query", "query-rope"},
                                                      {"key", "key-rope"},
                                                      {"value", "value"},
                                                      {scores_name, ""},
                                                      {weights_name, ""},
                                                      {"PV", "attention"},
                                                      {"output", "output"},
                                                      {"MLP", "down"}}};
  return rows;
}

std::vector<std::int64_t> usual_checkpoints(std::int64_t new_tokens) {
  std::vector<std::int64_t> steps{0};
  for (std::int64_t step = 1; step < new_tokens; step *= 2) steps.push_back(step);
  if (steps.back() < new_tokens - 1) steps.push_back(new_tokens - 1);
  return steps;
}

Result<ForcedDrift> forced_drift(const Engine& engine, const StudyArm& first,
                                 const StudyArm& second, std::span<const TokenId> prompt,
                                 const ForcedDriftOptions& options) {
  return DriftRun(engine, first, second, options).carry_out(prompt);
}

}  // namespace kvsim::experiments
