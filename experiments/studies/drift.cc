// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/drift.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/protocol/forced_drift.h"
#include "experiments/studies/drift_figures.h"
#include "experiments/studies/drift_tables.h"
#include "experiments/tables.h"
#include "experiments/work.h"

namespace kvsim::experiments {
namespace {

/// A figure of a layer, as records name it.
struct LayerField {
  std::string_view name;
  std::optional<double> (*value)(const LayerDrift&);
};

constexpr std::array layer_fields{
    LayerField{"norm", [](const LayerDrift& x) { return std::optional(x.all.norm); }},
    LayerField{"l2", [](const LayerDrift& x) { return std::optional(x.all.l2); }},
    LayerField{"relative", [](const LayerDrift& x) { return x.all.relative; }},
    LayerField{"cosine_distance", [](const LayerDrift& x) { return x.all.cosine_distance; }},
    LayerField{"median_ulps", [](const LayerDrift& x) { return std::optional(x.all.median_ulps); }},
    LayerField{"largest_ulps",
               [](const LayerDrift& x) { return std::optional(x.all.largest_ulps); }},
    LayerField{"massive",
               [](const LayerDrift& x) { return std::optional(static_cast<double>(x.massive)); }},
    LayerField{"rest_norm", [](const LayerDrift& x) { return std::optional(x.rest.norm); }},
    LayerField{"rest_l2", [](const LayerDrift& x) { return std::optional(x.rest.l2); }},
    LayerField{"rest_relative", [](const LayerDrift& x) { return x.rest.relative; }},
};

/// {"query":{"l2":[by layer],"relative":[…],"median_ulps":[…]},…}
Json operators_json(const std::vector<OperatorDrifts>& layers) {
  Json all = Json::object();
  for (const DriftOperator& row : drift_operators()) {
    Json fields = {
        {"l2", Json::array()}, {"relative", Json::array()}, {"median_ulps", Json::array()}};
    for (const OperatorDrifts& layer : layers) {
      const auto found = layer.operators.find(row.name);
      if (found == layer.operators.end()) continue;
      fields["l2"].push_back(json_of(found->second.l2));
      fields["relative"].push_back(json_of(found->second.relative));
      fields["median_ulps"].push_back(json_of(found->second.median_ulps));
    }
    if (!fields["l2"].empty()) all[std::string(row.name)] = std::move(fields);
  }
  return all;
}

Json step_json(const DriftStep& step) {
  Json layers = Json::object();
  for (const LayerField& field : layer_fields) {
    Json array = Json::array();
    for (const LayerDrift& layer : step.layers) array.push_back(json_of(field.value(layer)));
    layers[std::string(field.name)] = std::move(array);
  }
  Json weights_kl = Json::array();
  for (const OperatorDrifts& layer : step.operators) {
    Json heads = Json::array();
    for (const double each : layer.weights_kl) heads.push_back(json_of(each));
    if (!heads.empty()) weights_kl.push_back(std::move(heads));
  }
  return {{"step", step.step},
          {"kl", json_of(step.logits.kl)},
          {"argmax_differs", step.logits.first_argmax != step.logits.second_argmax},
          {"layers", std::move(layers)},
          {"operators", operators_json(step.operators)},
          {"weights_kl", std::move(weights_kl)}};
}

class DriftStudy : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> DriftStudy::units(const StudySetup& setup) const {
  Result<TextGroup> texts =
      TextGroup::of(*setup.engine, std::array{setup.on, setup.off}, setup.new_tokens);
  if (!texts) return texts.error();
  std::vector<StudyUnit> list;
  list.reserve(setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> work = texts->work(prompt_tokens(setup, i));
    if (!work) return work.error();
    list.push_back({"greedy", i, 0, *work});
  }
  return list;
}

Result<Json> DriftStudy::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const Result<ForcedDrift> drift = forced_drift(
      *setup.engine, *on, *off, setup.prompts[static_cast<std::size_t>(unit.prompt)].prompt.ids,
      {.new_tokens = setup.new_tokens,
       .stop_tokens = stops,
       .checkpoints = usual_checkpoints(setup.new_tokens),
       .operators = true});
  if (!drift) return drift.error();
  Json steps = Json::array();
  for (const DriftStep& step : drift->steps) steps.push_back(step_json(step));
  const std::optional<std::string>& left_out = drift->left_out;
  return Json{{"tokens", drift->tokens},
              {"head_dim", drift->head_dim},
              {"steps", std::move(steps)},
              {"left_out", left_out ? Json(*left_out) : Json(nullptr)}};
}

Result<StudySummary> DriftStudy::summarize(const StudyRecords& records) const {
  return summarize_drift(drift_figures(records));
}

}  // namespace

std::unique_ptr<Study> make_drift() { return std::make_unique<DriftStudy>(); }

}  // namespace kvsim::experiments
