// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/model_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "fuzz/flip/case.h"
#include "fuzz/flip/objective.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

constexpr double judge_slack = 1024;

bool is_dispatch(const ArmSetting& setting) { return setting.key == "dispatch"; }

/// The arm with the dispatch that it has anyway, by name.
Result<Arm> with_dispatch(const Engine& engine, Arm arm) {
  if (std::ranges::any_of(arm.settings, is_dispatch)) return arm;
  const auto plain = engine.arm({});
  if (!plain) return plain.error();
  arm.settings.push_back({"dispatch", (*plain)->dispatch()});
  std::ranges::sort(arm.settings, {}, &ArmSetting::key);
  return arm;
}

std::size_t largest(std::span<const double> logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

/// Collects what the steps of one prompt say.
class Steps {
 public:
  Steps(std::span<const TokenId> prompt, const std::array<Arm, 2>& arms)
      : fed_(prompt.begin(), prompt.end()), off_(arms[path_off].label) {}

  void add(const StepDump& dump) {
    logits_[dump.arm].assign(dump.logits.begin(), dump.logits.end());
  }
  void add(const StepRecord& record) {
    const bool off = record.arm == off_;
    tokens_[off ? path_off : path_on] = record.token;
    if (!off) margin_ = record.margin ? record.margin->logits : 0;
  }
  /// The step is over. Holds whether the arms chose different tokens.
  [[nodiscard]] bool add(const ComparisonRecord& record) {
    const bool differs = tokens_[path_on] != tokens_[path_off];
    if (!differs && record.largest_logit_difference > 0) {
      const double moved = std::min(record.top_two_error.value_or(0), 0.0);
      const double distance = std::max(margin_ + moved, 0.0);
      nearest_ = std::max(nearest_, -distance / record.largest_logit_difference);
    }
    return differs;
  }
  void feed() { fed_.push_back(static_cast<TokenId>(tokens_[path_on])); }

  [[nodiscard]] const std::vector<TokenId>& fed() const { return fed_; }
  [[nodiscard]] const std::array<std::vector<double>, 2>& logits() const { return logits_; }
  [[nodiscard]] double nearest() const { return nearest_; }

 private:
  std::vector<TokenId> fed_;
  std::string off_;
  std::array<std::vector<double>, 2> logits_;
  std::array<std::int64_t, 2> tokens_{};
  double margin_ = 0;
  double nearest_ = no_fitness;
};

}  // namespace

double ModelFlip::margin() const { return std::abs(exact); }

Result<ModelScorer> ModelScorer::make(const Engine& engine, std::array<Arm, 2> arms,
                                      std::int64_t max_new_tokens) {
  constexpr std::array labels{"on", "off"};
  for (const std::size_t path : {path_on, path_off}) {
    Result<Arm> arm = with_dispatch(engine, std::move(arms[path]));
    if (!arm) return arm.error();
    arms[path] = std::move(*arm);
    arms[path].label = labels[path];
  }
  ModelScorer scorer(engine, std::move(arms), max_new_tokens);
  const std::array judge{ArmSetting{"dispatch", "binary64"}};
  Result<std::unique_ptr<EngineArm>> binary64 = engine.arm(judge);
  if (!binary64) return binary64.error();
  scorer.binary64_ = std::move(*binary64);
  const std::array<TokenId, 1> shortest{0};
  const auto checked = scorer.prepared(shortest);
  if (!checked) return checked.error();
  return scorer;
}

Result<PreparedRun> ModelScorer::prepared(std::span<const TokenId> prompt) const {
  RunOptions options;
  options.arms = {arms_.begin(), arms_.end()};
  options.max_new_tokens = max_new_tokens_;
  options.teacher_forced = true;
  options.layer_digests = false;
  return PreparedRun::make(*engine_, std::move(options),
                           {RunPrompt{0, {prompt.begin(), prompt.end()}}});
}

Result<PromptScore> ModelScorer::score(std::span<const TokenId> prompt) const {
  const auto run = prepared(prompt);
  if (!run) return run.error();
  Steps steps(prompt, arms_);
  PromptScore result;
  RunOutput output;
  output.dump = [&](const StepDump& dump) -> Result<bool> {
    steps.add(dump);
    return true;
  };
  output.line = [&](const RecordLine& line) -> Result<bool> {
    if (const auto* const step = std::get_if<StepRecord>(&line)) steps.add(*step);
    const auto* const comparison = std::get_if<ComparisonRecord>(&line);
    if (comparison == nullptr) return true;
    if (steps.add(*comparison)) {
      auto flip = judged(
          {engine_->model(), engine_->model_sha256(), arms_, std::ssize(prompt), steps.fed()},
          steps.logits());
      if (!flip) return flip.error();
      if (flip->holds() && (!result.flip || flip->ratio() > result.flip->ratio())) {
        result.flip = std::move(*flip);
      }
    }
    steps.feed();
    return true;
  };
  const auto done = run->run(output);
  if (!done) return done.error();
  result.fitness = result.flip ? 1 + result.flip->ratio() : steps.nearest();
  return result;
}

Result<ModelFlip> ModelScorer::judged(ModelCase model_case,
                                      const std::array<std::vector<double>, 2>& logits) const {
  const std::int64_t rows = std::ssize(model_case.ids);
  const auto sequence = binary64_->open(rows, {.prompt_tokens = rows});
  if (!sequence) return sequence.error();
  const auto pass =
      (*sequence)->pass(model_case.ids, {.first_row = 0, .rows = rows, .cached_rows = 0}, {});
  if (!pass) return pass.error();
  const std::vector<double>& exact = pass->logits;
  ModelFlip flip;
  flip.flip_case = std::move(model_case);
  for (const std::size_t path : {path_on, path_off}) {
    flip.tokens[path] = static_cast<std::int64_t>(largest(logits[path]));
    for (std::size_t token = 0; token < exact.size(); ++token) {
      flip.largest_error[path] =
          std::max(flip.largest_error[path], std::abs(logits[path][token] - exact[token]));
    }
  }
  const auto on = static_cast<std::size_t>(flip.tokens[path_on]);
  const auto off = static_cast<std::size_t>(flip.tokens[path_off]);
  for (const std::size_t path : {path_on, path_off}) {
    flip.differences[path] = logits[path][on] - logits[path][off];
  }
  flip.exact = exact[on] - exact[off];
  const softfloat::NamedFormat* const storage = softfloat::find_format(engine_->storage());
  const int precision = storage == nullptr ? 24 : storage->format.precision;
  flip.judge_error = judge_slack * std::ldexp(1.0, precision - 53) * flip.unit();
  return flip;
}

Result<ModelFlip> ModelScorer::judge(const ModelCase& model_case) const {
  if (model_case.model_sha256 != engine_->model_sha256()) {
    return Error{ErrorKind::usage,
                 fmt::format("the case is of the model with sha256 {}…; {} has {}…",
                             model_case.model_sha256.substr(0, 16), engine_->model(),
                             engine_->model_sha256().substr(0, 16))};
  }
  const std::span<const TokenId> ids(model_case.ids);
  const std::int64_t generated = std::ssize(ids) - model_case.prompt_tokens;
  // Checks the ids, all of them as one prompt.
  if (const auto checked = prepared(ids); !checked) return checked.error();
  const auto run = prepared(ids.first(static_cast<std::size_t>(model_case.prompt_tokens)));
  if (!run) return run.error();
  std::array<std::vector<double>, 2> logits;
  for (const std::size_t path : {path_on, path_off}) {
    const PreparedArm& arm = run->arms()[path];
    const auto passes = cache_plan(arm.arm, model_case.prompt_tokens, generated);
    if (!passes) return passes.error();
    const auto sequence =
        arm.engine->open(std::ssize(ids), arm.launch_of(model_case.prompt_tokens));
    if (!sequence) return sequence.error();
    for (const PlanStep& step : *passes) {
      auto pass = (*sequence)->pass(ids.first(static_cast<std::size_t>(step.first_row + step.rows)),
                                    step, {});
      if (!pass) return pass.error();
      logits[path] = std::move(pass->logits);
    }
  }
  return judged(model_case, logits);
}

Result<std::vector<TokenId>> ModelScorer::generated(std::int64_t tokens, Random& random) const {
  std::vector<TokenId> ids{static_cast<TokenId>(random.below(engine_->vocabulary()))};
  const auto run = prepared(ids);
  if (!run) return run.error();
  const PreparedArm& arm = run->arms()[path_on];
  const auto sequence = arm.engine->open(tokens, arm.launch_of(1));
  if (!sequence) return sequence.error();
  const Sampling sampling{.temperature = 1, .seed = random.bits()};
  while (std::ssize(ids) < tokens) {
    const std::int64_t row = std::ssize(ids) - 1;
    const auto pass = (*sequence)->pass(ids, {.first_row = row, .rows = 1, .cached_rows = row}, {});
    if (!pass) return pass.error();
    const auto token = sample_token(pass->logits, sampling, 0, static_cast<std::uint64_t>(row));
    if (!token) return token.error();
    ids.push_back(static_cast<TokenId>(*token));
  }
  return ids;
}

}  // namespace kvsim::fuzz
