// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/behaviour_figures.h"

#include <algorithm>

#include "experiments/protocol/step_json.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// KL of each step of the texts as they are, each after its own tokens: until they part that is the
/// KL after the same tokens.
std::vector<double> own_token_kl(const std::vector<double>& same_tokens,
                                 const std::vector<double>& apart,
                                 const std::optional<std::int64_t>& flip) {
  if (!flip) return same_tokens;
  std::vector<double> nats(same_tokens.begin(), same_tokens.begin() + *flip + 1);
  nats.insert(nats.end(), apart.begin(), apart.end());
  return nats;
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  numbers.reserve(list.size());
  for (const Json& each : list) numbers.push_back(number_of(each).value_or(0));
  return numbers;
}

void add_answers(StrategyFigures& figures, std::int64_t prompt, const Json& values) {
  if (!values.at("on").contains("text")) return;
  const auto expected = values.at("answer").get<std::string>();
  const auto on_text = values.at("on").at("text").get<std::string>();
  const auto off_text = values.at("off").at("text").get<std::string>();
  for (std::size_t rule = 0; rule < answer_rules; ++rule) {
    const auto on = metrics::is_correct(on_text, expected, static_cast<metrics::AnswerRule>(rule));
    const auto off =
        metrics::is_correct(off_text, expected, static_cast<metrics::AnswerRule>(rule));
    if (!on || !off) continue;
    AnswerFigures& answers = figures.answers[rule];
    answers.on.add(prompt, *on);
    answers.off.add(prompt, *off);
    answers.difference.add(prompt, (*on ? 1.0 : 0.0) - (*off ? 1.0 : 0.0));
  }
}

}  // namespace

void StepKl::add(std::int64_t prompt, double nats) {
  kl.add(prompt, nats);
  above_reported.add(prompt, nats > reported_kl);
}

void KlAlongTexts::add_text(std::int64_t prompt, const std::vector<double>& nats,
                            const std::optional<std::int64_t>& flip) {
  for (std::size_t step = 0; step < nats.size(); ++step) {
    all_.add(prompt, nats[step]);
    parts_[3 * step / nats.size()].add(prompt, nats[step]);
    if (!flip) continue;
    const TextPart part = static_cast<std::int64_t>(step) <= *flip ? TextPart::up_to_the_fork
                                                                   : TextPart::behind_the_fork;
    parts_[static_cast<std::size_t>(part)].add(prompt, nats[step]);
  }
}

void StrategyFigures::add(const StudyUnit& unit, const Json& values, std::int64_t new_tokens) {
  const std::int64_t prompt = unit.prompt;
  std::optional<std::int64_t> flip;
  if (const Json& step = values.at("flip"); !step.is_null()) {
    flip = step.get<std::int64_t>();
    // A step that is none throws here.
    static_cast<void>(values.at("forced").at("kl").at(static_cast<std::size_t>(*flip)));
  }
  parted.add(prompt, flip.has_value());
  if (flip) flips.push_back(static_cast<double>(*flip));
  std::vector<double> kl;
  const std::vector<RecordedStep> steps = recorded_steps(values.at("forced"));
  kl.reserve(steps.size());
  for (const RecordedStep& step : steps) {
    kl.push_back(step.kl);
    js.add(prompt, step.js);
    argmax_differs.add(prompt, step.argmax_differs);
    if (!step.argmax_differs) continue;
    largest_flip_margin = std::max(largest_flip_margin, step.on_margin.value_or(0));
  }
  const std::vector<double> apart = numbers_of(values.at("kl_apart"));
  same_tokens.add_text(prompt, kl, flip);
  own_tokens.add_text(prompt, own_token_kl(kl, apart, flip), flip);
  kl_apart.add_prompt(prompt);
  for (const double nats : apart) kl_apart.add(prompt, nats);
  for (const double nats : numbers_of(values.at("js_apart"))) js_apart.add(prompt, nats);
  add_answers(*this, prompt, values);
  if (std::ssize(values.at("on").at("tokens")) == new_tokens) ++full_length;
}

BehaviourFigures behaviour_figures(const StudyRecords& records) {
  BehaviourFigures figures;
  const auto new_tokens = records.head.at("new_tokens").get<std::int64_t>();
  for (const StudyRecords::Unit& record : records.units) {
    std::string name = record.unit.part;
    const bool is_unrelated = name.ends_with(unrelated_suffix);
    if (is_unrelated) name.resize(name.size() - unrelated_suffix.size());
    if (!figures.strategies.contains(name)) figures.order.push_back(name);
    StrategyFigures& strategy = figures.strategies[name];
    if (!is_unrelated) {
      strategy.add(record.unit, record.values, new_tokens);
      continue;
    }
    strategy.unrelated.add_prompt(record.unit.prompt);
    for (const double nats : numbers_of(record.values.at("kl"))) {
      strategy.unrelated.add(record.unit.prompt, nats);
    }
  }
  return figures;
}

}  // namespace kvsim::experiments
