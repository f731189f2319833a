// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/predicted.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/protocol/arm_passes.h"
#include "experiments/protocol/step_json.h"
#include "experiments/studies/predicted_figures.h"
#include "experiments/studies/predicted_steps.h"
#include "experiments/studies/predicted_tables.h"
#include "experiments/work.h"

namespace kvsim::experiments {
namespace {

/// Seeded decoders of a study: as many as this many multiply-adds allow, between the two.
constexpr double predicted_work = 3e10;
constexpr double fewest_decoders = 3;
constexpr double most_decoders = 64;

/// Rows of the seeded decoders of a prompt: both ways to each step, and once more for the factors.
std::int64_t predicted_rows(const StudySetup& setup, std::int64_t prompt) {
  std::int64_t rows = 2 * (prompt_tokens(setup, prompt) + 1);
  for (const std::int64_t step : predicted_steps(setup.new_tokens)) {
    rows += 2 * (prompt_tokens(setup, prompt) + step);
  }
  return rows;
}

/// How many of the first prompts get seeded decoders of their length, and how many each.
struct Decoders {
  std::int64_t prompts = 0;
  std::int64_t each = 0;
};

Decoders decoders_of(const StudySetup& setup, const DecoderShape& shape) {
  const auto prompts = std::ssize(setup.prompts);
  if (prompts == 0) return {};
  const auto row = static_cast<double>(shape.layer_weights() * shape.layers);
  const double work = row * static_cast<double>(predicted_rows(setup, 0));
  const auto count =
      static_cast<std::int64_t>(std::clamp(predicted_work / work, fewest_decoders, most_decoders));
  return {std::min(count, prompts), std::max<std::int64_t>(1, count / prompts)};
}

/// The arms of a setup and what the simulator has of them.
struct Pair {
  StudyArm on;
  StudyArm off;
  SimulatedPair simulated;
};

Result<Pair> pair_of(const StudySetup& setup) {
  Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  Result<SimulatedPair> simulated = simulated_pair(*on, *off);
  if (!simulated) return simulated.error();
  return Pair{std::move(*on), std::move(*off), std::move(*simulated)};
}

Json branches_json(const ActivationSizes& sizes) {
  Json attention = Json::array();
  Json mlp = Json::array();
  for (const BranchSizes& each : sizes.branches) {
    attention.push_back(each.attention);
    mlp.push_back(each.mlp);
  }
  return {{"embedding", sizes.embedding},
          {"attention", std::move(attention)},
          {"mlp", std::move(mlp)},
          {"states", sizes.states}};
}

Json predicted_json(const PredictedText& text) {
  Json relative = Json::array();
  Json logit = Json::array();
  for (const StepDrift& each : text.drifts) {
    relative.push_back(each.relative);
    logit.push_back(each.logit);
  }
  return {{"steps", text.steps}, {"relative", std::move(relative)}, {"logit", std::move(logit)}};
}

class PredictedStudy : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override {
    Result<PredictedFigures> figures = predicted_figures(records);
    if (!figures) return figures.error();
    return summarize_predicted(*figures);
  }
};

Result<std::vector<StudyUnit>> PredictedStudy::units(const StudySetup& setup) const {
  // What nothing can be predicted of is refused before anything is computed.
  const Result<Pair> pair = pair_of(setup);
  if (!pair) return pair.error();
  const Decoders decoders = decoders_of(setup, pair->simulated.first.shape);
  Result<TextGroup> texts =
      TextGroup::of(*setup.engine, std::array{setup.on, setup.off}, setup.new_tokens);
  if (!texts) return texts.error();
  std::vector<StudyUnit> list;
  list.reserve(setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> text = texts->work(prompt_tokens(setup, i));
    if (!text) return text.error();
    std::int64_t rows = *text;
    if (i < decoders.prompts) rows += decoders.each * predicted_rows(setup, i);
    list.push_back({"greedy", i, 0, rows});
  }
  if (setup.prompts.empty()) return list;
  for (const Arm* arm : {&setup.on, &setup.off}) {
    const auto passes = passes_behind(*arm, prompt_tokens(setup, 0), 1);
    if (!passes) return passes.error();
  }
  return list;
}

Result<Json> PredictedStudy::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const Result<Pair> pair = pair_of(setup);
  if (!pair) return pair.error();
  const auto& ids = setup.prompts[static_cast<std::size_t>(unit.prompt)].prompt.ids;
  const Result<MeasuredText> text = measure_text(setup, pair->on, pair->off, ids);
  if (!text) return text.error();
  Json values = {{"tokens", text->steps.size()},   {"steps", steps_json(text->steps)},
                 {"logit_gain", text->logit_gain}, {"logit_step", text->logit_step},
                 {"relative", text->relative},     {"sizes", branches_json(text->sizes)},
                 {"gains", text->gains},           {"predicted", Json::array()}};
  const Decoders decoders = decoders_of(setup, pair->simulated.first.shape);
  if (unit.prompt >= decoders.prompts) return values;
  for (std::int64_t i = 0; i < decoders.each; ++i) {
    const std::int64_t seed = 1 + unit.prompt + i * std::ssize(setup.prompts);
    const Result<PredictedText> predicted =
        predict_text(pair->simulated, setup, std::ssize(ids), predicted_steps(setup.new_tokens),
                     text->sizes, static_cast<std::uint64_t>(seed));
    if (!predicted) return predicted.error();
    values["predicted"].push_back(predicted_json(*predicted));
  }
  return values;
}

}  // namespace

std::unique_ptr<Study> make_predicted() { return std::make_unique<PredictedStudy>(); }

}  // namespace kvsim::experiments
