// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"
#include "experiments/metrics/plateau.h"
#include "experiments/protocol/along_text.h"
#include "experiments/tables.h"
#include "run/divergence.h"
#include "sim/predict/rounding.h"

/// Controls of how far apart two arms are: after the same tokens, after unrelated ones, by layer.
namespace kvsim::experiments {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Appends KL(first ‖ second).
Result<bool> add_kl(Json& list, const EnginePass& first, const EnginePass& second) {
  const auto distance = divergence(first.logits, second.logits);
  if (!distance) return distance.error();
  list.push_back(json_of(distance->kl));
  return true;
}

/// What predict says of the rounding of two arms.
struct PredictedArms {
  LogitErrors on;
  LogitErrors off;
};

Result<PredictedArms> predicted_arms(const StudyArm& on, const StudyArm& off) {
  const Result<std::vector<double>> first = predicted_drift_of(on);
  if (!first) return first.error();
  const Result<std::vector<double>> second = predicted_drift_of(off);
  if (!second) return second.error();
  return PredictedArms{{first->back(), on.engine->logit_format()},
                       {second->back(), off.engine->logit_format()}};
}

/// Appends the KL that is predicted of an arm at a step: the smaller one of what the logits of the
/// two arms say, so that a defect that flattens a distribution does not allow itself.
Result<bool> add_predicted(Json& list, const LogitErrors& errors, const EnginePass& first,
                           const EnginePass& second) {
  const Result<double> one = predicted_kl(first.logits, errors);
  if (!one) return one.error();
  const Result<double> two = predicted_kl(second.logits, errors);
  if (!two) return two.error();
  list.push_back(json_of(std::min(*one, *two)));
  return true;
}

/// ‖a − b‖ ÷ ‖b‖.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

/// The square of a number of the records; infinity where it was none.
double square_of(const Json& number) {
  const double value = number_of(number).value_or(infinity);
  return value * value;
}

}  // namespace

Result<Json> measure_forced(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const Result<StudyArm> reference = reference_arm(setup);
  const Result<double> on_roundoff = unit_roundoff(*on);
  if (!on_roundoff) return on_roundoff.error();
  const Result<double> off_roundoff = unit_roundoff(*off);
  if (!off_roundoff) return off_roundoff.error();
  Json values = {{"on_roundoff", *on_roundoff},
                 {"off_roundoff", *off_roundoff},
                 {"kl", Json::array()},
                 {"largest_logit_difference", Json::array()}};
  const auto ids = tokens_of(setup, prompt);
  std::vector<AlongArm> arms{{&*on, ids}, {&*off, ids}};
  if (reference) {
    arms.push_back({&*reference, ids});
    values["floor_on"] = Json::array();
    values["floor_off"] = Json::array();
  } else {
    values["floor_reason"] = reference.error().message;
  }
  const Result<PredictedArms> predicted = predicted_arms(*on, *off);
  if (predicted) {
    values["predicted_on"] = Json::array();
    values["predicted_off"] = Json::array();
  } else {
    values["prediction_reason"] = predicted.error().message;
  }
  const auto add = [&](const AlongStep& step) -> Result<bool> {
    const auto& passes = step.passes;
    if (predicted) {
      for (const auto& [key, errors] : {std::pair("predicted_on", &predicted->on),
                                        std::pair("predicted_off", &predicted->off)}) {
        const Result<bool> added = add_predicted(values[key], *errors, passes[0], passes[1]);
        if (!added) return added;
      }
    }
    values["largest_logit_difference"].push_back(
        logit_difference(passes[0].logits, passes[1].logits).largest);
    Result<bool> done = add_kl(values["kl"], passes[0], passes[1]);
    if (done && passes.size() > 2) done = add_kl(values["floor_on"], passes[0], passes[2]);
    if (done && passes.size() > 2) done = add_kl(values["floor_off"], passes[1], passes[2]);
    return done;
  };
  const auto done = along_text(arms, {.new_tokens = setup.new_tokens}, add);
  if (!done) return done.error();
  return values;
}

ControlVerdict judge_forced(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 3, verdict);
  if (values.empty()) return verdict;
  if (const auto rounding = rounding_kl(records)) {
    verdict.checks.push_back({.what = "mean KL after the same tokens (nats)",
                              .measured = mean_of(numbers_of(values, "kl")),
                              .low = 0,
                              .high = rounding->allowed,
                              .predicted = rounding->predicted,
                              .floor = rounding->floor});
  } else {
    add_reason(verdict, "", values.front()->at("prediction_reason").get<std::string>());
  }
  return verdict;
}

Result<Json> measure_plateau(const StudySetup& setup, std::int64_t prompt) {
  const auto partners = metrics::unrelated_partners(std::ssize(setup.prompts), 1);
  if (!partners) return not_applicable("one prompt has no other to be compared with");
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  std::vector<std::vector<EnginePass>> texts;
  for (const std::int64_t index : {prompt, (*partners)[static_cast<std::size_t>(prompt)]}) {
    std::vector<EnginePass>& text = texts.emplace_back();
    const std::array arms{AlongArm{&*on, tokens_of(setup, index)}};
    const auto keep = [&](const AlongStep& step) -> Result<bool> {
      text.push_back(step.passes[0]);
      return true;
    };
    const auto done = along_text(arms, {.new_tokens = setup.new_tokens}, keep);
    if (!done) return done.error();
  }
  Json values = {{"kl", Json::array()}};
  for (std::size_t step = 0; step < texts[0].size(); ++step) {
    const auto added = add_kl(values["kl"], texts[0][step], texts[1][step]);
    if (!added) return added.error();
  }
  return values;
}

ControlVerdict judge_plateau(const ControlRecords& records) {
  ControlVerdict verdict;
  ControlVerdict ignored;
  const auto values = measured_values(records, 4, verdict);
  const auto forced = measured_values(records, 3, ignored);
  if (values.empty() || forced.empty()) return verdict;
  const double largest = std::ranges::max(numbers_of(forced, "kl"));
  ControlCheck check{.what = "mean KL of two unrelated texts (nats)",
                     .measured = mean_of(numbers_of(values, "kl")),
                     .low = largest};
  if (const auto rounding = rounding_kl(records)) {
    check.low = std::max(largest, rounding->allowed);
    check.predicted = rounding->predicted;
    check.floor = rounding->floor;
  }
  verdict.checks.push_back(std::move(check));
  return verdict;
}

Result<Json> measure_drift(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> reference = reference_arm(setup);
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const Result<double> on_roundoff = unit_roundoff(*on);
  if (!on_roundoff) return on_roundoff.error();
  const Result<double> off_roundoff = unit_roundoff(*off);
  if (!off_roundoff) return off_roundoff.error();
  const Result<std::vector<double>> predicted_on = predicted_drift_of(*on);
  if (!predicted_on) return not_applicable(predicted_on.error().message);
  const Result<std::vector<double>> predicted_off = predicted_drift_of(*off);
  if (!predicted_off) return not_applicable(predicted_off.error().message);
  const auto ids = tokens_of(setup, prompt);
  std::vector<AlongArm> arms{{&*on, ids}, {&*off, ids}};
  // Each list has an entry for each step behind the prompt, which is an array over the layers.
  Json values = {{"on_roundoff", *on_roundoff},
                 {"off_roundoff", *off_roundoff},
                 {"predicted_on", json_of(predicted_on->front())},
                 {"predicted_off", json_of(predicted_off->front())},
                 {"apart", Json::array()}};
  if (reference) {
    arms.push_back({&*reference, ids});
    values["floor_on"] = Json::array();
    values["floor_off"] = Json::array();
  }
  const auto add = [&](const AlongStep& step) -> Result<bool> {
    if (step.step == 0) return true;
    const auto layers_of = [&](std::size_t first, std::size_t second) {
      Json layers = Json::array();
      const std::vector<StateValues>& one = step.passes[first].values;
      const std::vector<StateValues>& two = step.passes[second].values;
      for (std::size_t layer = 0; layer < std::min(one.size(), two.size()); ++layer) {
        layers.push_back(json_of(relative_difference(one[layer].values, two[layer].values)));
      }
      return layers;
    };
    values["apart"].push_back(layers_of(0, 1));
    if (!reference) return true;
    values["floor_on"].push_back(layers_of(0, 2));
    values["floor_off"].push_back(layers_of(1, 2));
    return true;
  };
  const AlongOptions options{.new_tokens = setup.new_tokens, .request = {.layer_values = true}};
  const auto done = along_text(arms, options, add);
  if (!done) return done.error();
  return values;
}

ControlVerdict judge_drift(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 15, verdict);
  if (values.empty()) return verdict;
  // Mean squares of the first layer.
  const auto first_layer = [&](const char* key) {
    std::vector<double> squares;
    for (const Json* const each : values) {
      squares.reserve(squares.size() + each->at(key).size());
      for (const Json& step : each->at(key)) squares.push_back(square_of(step.at(0)));
    }
    return mean_of(squares);
  };
  const auto predicted = [&](const char* key) {
    std::vector<double> squares;
    squares.reserve(values.size());
    for (const Json* const each : values) squares.push_back(square_of(each->at(key)));
    return mean_of(squares);
  };
  const double on = predicted("predicted_on");
  const double off = predicted("predicted_off");
  const double roundoff = values.front()->at("on_roundoff").get<double>();
  ControlCheck check{
      .what = "layer 0: relative L2 (unit roundoffs)",
      .measured = std::sqrt(first_layer("apart")) / roundoff,
      .low = 0,
      .high = weights_allowance().factor * std::sqrt(apart_square(on, off)) / roundoff,
      .predicted = std::sqrt(on + off) / roundoff};
  if (values.front()->contains("floor_on")) {
    const double ratio = roundoff / values.front()->at("off_roundoff").get<double>();
    check.floor =
        std::sqrt(measured_apart_square(first_layer("floor_on"), first_layer("floor_off"), ratio)) /
        roundoff;
  }
  verdict.checks.push_back(std::move(check));
  return verdict;
}

}  // namespace kvsim::experiments
