// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/predicted_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "experiments/metrics/drift.h"
#include "experiments/protocol/along_text.h"
#include "experiments/protocol/arm_passes.h"
#include "experiments/protocol/layer_gains.h"
#include "sim/ulp.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

double size_of(std::span<const double> row) {
  double squares = 0;
  for (const double x : row) squares += x * x;
  return std::sqrt(squares / static_cast<double>(row.size()));
}

/// Sums of the sizes of a pass's activations. The norm behind a branch, where there is one, comes
/// after its projection and takes its place.
void read_sizes(const EnginePass& pass, ActivationSizes& sizes) {
  for (const StateValues& each : pass.values) {
    if (each.operation == "embedding") sizes.embedding = size_of(each.values);
    if (each.layer < 0) continue;
    if (each.operation == "hidden") sizes.states.push_back(size_of(each.values));
    const bool attends = each.operation == "output" || each.operation == "attention-post-norm";
    const bool is_mlp = each.operation == "down" || each.operation == "mlp-post-norm";
    if (!attends && !is_mlp) continue;
    const auto layer = static_cast<std::size_t>(each.layer);
    if (sizes.branches.size() <= layer) sizes.branches.resize(layer + 1);
    (attends ? sizes.branches[layer].attention : sizes.branches[layer].mlp) = size_of(each.values);
  }
}

/// What a seeded layer adds moves by so much for one unit of what it reads, squared. A seeded
/// attention moves by the same share as its input; a gated MLP of independent normal numbers g and
/// u by √(1 + E[silu′(g)²] ÷ E[silu(g)²]) = √2.067 times the share, which gelu nearly has, too.
double seeded_gain(const BranchSizes& branch, double state) {
  constexpr double gated = 2.067;
  const double before_mlp = state * state + branch.attention * branch.attention;
  return std::sqrt(branch.attention * branch.attention / (state * state) +
                   gated * branch.mlp * branch.mlp / before_mlp);
}

/// Takes out of the branches what does not move: they become smaller where the model's layers move
/// less than seeded ones of the same sizes. The state's size stays, so that the rest counts as what
/// every row has in common. The first layer takes the mean of the others.
void leave_out_what_stays(const std::vector<double>& gains, ActivationSizes& sizes) {
  constexpr double least = 0x1p-6;
  std::vector<double> shares;
  double sum = 0;
  for (std::size_t i = 0; i < gains.size() && i + 1 < sizes.branches.size(); ++i) {
    const double seeded = seeded_gain(sizes.branches[i + 1], sizes.states[i]);
    shares.push_back(std::clamp(gains[i] / seeded, least, 1.0));
    sum += shares.back();
  }
  if (shares.empty()) return;
  shares.insert(shares.begin(), sum / static_cast<double>(shares.size()));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sizes.branches[i].attention *= shares[i];
    sizes.branches[i].mlp *= shares[i];
  }
}

/// Adds up what steps measure.
class Measurement {
 public:
  Measurement(const StudyArm& first, std::span<const std::int64_t> probed)
      : first_(first), probed_(probed) {}

  Result<bool> add(const AlongStep& step);
  /// Sums become means.
  Result<MeasuredText> finish();

 private:
  Result<bool> add_gains(const AlongStep& step);

  const StudyArm& first_;
  std::span<const std::int64_t> probed_;  ///< steps of which gains are taken
  std::vector<double> gains_;             ///< sums
  std::int64_t gains_of_ = 0;             ///< steps
  MeasuredText text_;
  ActivationSizes sums_{.embedding = 0, .branches = {}, .states = {}};
};

Result<bool> Measurement::add(const AlongStep& step) {
  const EnginePass& a = step.passes[0];
  const EnginePass& b = step.passes[1];
  const Result<ForcedStep> logits =
      compare_logits(a.logits, b.logits, first_.engine->logit_format());
  if (!logits) return logits.error();
  text_.steps.push_back(*logits);
  const double largest = *std::ranges::max_element(a.logits);
  const double grid = std::ldexp(1.0, ulp_exponent(first_.engine->logit_format(), largest));
  const Result<double> gain = top_logits_gain(step.sequences[0], first_.engine->activation_format(),
                                              grid, static_cast<std::uint64_t>(step.step));
  if (!gain) return gain.error();
  text_.logit_gain.push_back(*gain);
  text_.logit_step.push_back(grid);
  std::vector<double> layers;
  const auto hidden = [](const StateValues& each) { return each.operation == "hidden"; };
  auto other = b.values.begin();
  for (const StateValues& each : a.values) {
    if (!hidden(each)) continue;
    other = std::find_if(other, b.values.end(), hidden);
    if (other == b.values.end()) break;
    const Result<metrics::Drift> drift =
        metrics::drift(first_.engine->activation_format(), each.values, other->values);
    if (!drift) return drift.error();
    layers.push_back(drift->relative.value_or(0));
    ++other;
  }
  text_.relative.push_back(std::move(layers));
  ActivationSizes sizes;
  read_sizes(a, sizes);
  sums_.branches.resize(sizes.branches.size(), {.attention = 0, .mlp = 0});
  sums_.states.resize(sizes.states.size());
  sums_.embedding += sizes.embedding;
  for (std::size_t i = 0; i < sizes.states.size(); ++i) sums_.states[i] += sizes.states[i];
  for (std::size_t i = 0; i < sizes.branches.size(); ++i) {
    sums_.branches[i].attention += sizes.branches[i].attention;
    sums_.branches[i].mlp += sizes.branches[i].mlp;
  }
  return add_gains(step);
}

Result<bool> Measurement::add_gains(const AlongStep& step) {
  if (std::ranges::find(probed_, step.step) == probed_.end()) return true;
  const Result<std::vector<double>> gains = layer_gains(
      step.sequences[0], first_.engine->activation_format(), static_cast<std::uint64_t>(step.step));
  if (!gains) return gains.error();
  gains_.resize(gains->size());
  for (std::size_t i = 0; i < gains->size(); ++i) gains_[i] += (*gains)[i];
  ++gains_of_;
  return true;
}

Result<MeasuredText> Measurement::finish() {
  const auto steps = static_cast<double>(text_.steps.size());
  if (sums_.branches.empty() || text_.relative.front().size() != sums_.branches.size()) {
    return Error{ErrorKind::unavailable, "what each layer adds to the hidden state"};
  }
  text_.sizes.embedding = sums_.embedding / steps;
  for (const BranchSizes& each : sums_.branches) {
    text_.sizes.branches.push_back({each.attention / steps, each.mlp / steps});
  }
  for (const double each : sums_.states) text_.sizes.states.push_back(each / steps);
  for (double& each : gains_) each /= static_cast<double>(gains_of_);
  text_.gains = gains_;
  leave_out_what_stays(gains_, text_.sizes);
  return std::move(text_);
}

/// What an arm computes, where a seeded decoder can compute it too. Errors (usage): a setting that
/// seeded decoders do not know; (unavailable): an arm that does not say.
Result<ArmArithmetic> seeded_arithmetic(const StudyArm& arm) {
  Result<ArmArithmetic> arithmetic = arithmetic_of(*arm.engine);
  if (!arithmetic) return arithmetic.error();
  const DecoderFormats& formats = arithmetic->formats;
  const auto refused = [&arm](std::string_view why) {
    return Error{ErrorKind::usage,
                 fmt::format("a seeded decoder as {}{}", arm.engine->dispatch(), why)};
  };
  if (arithmetic->is_planted) return refused(": a planted defect; accepted: arms without one");
  if (formats.activations == softfloat::binary64) {
    return refused(" in binary64; accepted: binary32 and narrower formats");
  }
  if (formats.kv != formats.activations || formats.operands || formats.accumulator) {
    return refused(
        "; accepted: one format for hidden states, keys and values, and the kernels' own operands "
        "and accumulators");
  }
  return arithmetic;
}

}  // namespace

Result<MeasuredText> measure_text(const StudySetup& setup, const StudyArm& first,
                                  const StudyArm& second, std::span<const TokenId> prompt) {
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const std::array<AlongArm, 2> arms{{{&first, prompt}, {&second, prompt}}};
  const std::vector<std::int64_t> probed = predicted_steps(setup.new_tokens);
  Measurement measurement(first, probed);
  const Result<bool> done =
      along_text(arms,
                 {.new_tokens = setup.new_tokens,
                  .request = {.layer_values = true, .operator_values = true},
                  .stop_tokens = stops},
                 [&](const AlongStep& step) { return measurement.add(step); });
  if (!done) return done.error();
  return measurement.finish();
}

Result<SimulatedPair> simulated_pair(const StudyArm& first, const StudyArm& second) {
  Result<ArmArithmetic> one = seeded_arithmetic(first);
  if (!one) return one.error();
  Result<ArmArithmetic> two = seeded_arithmetic(second);
  if (!two) return two.error();
  if (one->formats.activations != two->formats.activations || one->shape != two->shape) {
    return Error{ErrorKind::usage,
                 "a prediction for arms of two formats or shapes; accepted: one of both"};
  }
  return SimulatedPair{std::move(*one), std::move(*two)};
}

std::vector<std::int64_t> predicted_steps(std::int64_t new_tokens) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step < new_tokens - 1; step *= 4) steps.push_back(step);
  if (new_tokens > 1) steps.push_back(new_tokens - 1);
  return steps;
}

Result<PredictedText> predict_text(const SimulatedPair& pair, const StudySetup& setup,
                                   std::int64_t prompt_tokens, std::span<const std::int64_t> steps,
                                   const ActivationSizes& sizes, std::uint64_t seed) {
  DecoderOptions options;
  options.shape = pair.first.shape;
  options.shape.embedding_scale = sizes.embedding;
  options.storage = pair.first.formats.activations;
  options.on = &pair.first.dispatch.dispatch();
  options.off = &pair.second.dispatch.dispatch();
  options.rope_source = pair.first.rope_source;
  options.seed = seed;
  options.controls = false;
  options.engine.threads = 1;
  PredictedText text;
  for (const std::int64_t step : steps) {
    Result<std::vector<std::int64_t>> first = passes_behind(setup.on, prompt_tokens, step);
    if (!first) return first.error();
    Result<std::vector<std::int64_t>> second = passes_behind(setup.off, prompt_tokens, step);
    if (!second) return second.error();
    options.prefix = prompt_tokens + step - 1;
    options.on_passes = std::move(*first);
    options.off_passes = std::move(*second);
    if (options.branch_factors.empty()) {
      Result<std::vector<BranchSizes>> factors = branch_factors(options, sizes);
      if (!factors) return factors.error();
      options.branch_factors = std::move(*factors);
    }
    Result<StepDrift> drift = step_drift(options);
    if (!drift) return drift.error();
    text.steps.push_back(step);
    text.drifts.push_back(std::move(*drift));
  }
  return text;
}

}  // namespace kvsim::experiments
