// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/protocol/along_text.h"
#include "experiments/protocol/pair_text.h"
#include "run/divergence.h"
#include "run/sampling.h"
#include "sim/double_double.h"
#include "sim/exp.h"
#include "sim/philox.h"

/// Controls of which token is chosen. Their texts are random tokens: margins are smaller there than
/// in a model's own text, so that tokens flip.
namespace kvsim::experiments {
namespace {

/// Random streams begin here: those of prompts and of sampling lie elsewhere.
constexpr std::uint64_t first_stream = std::uint64_t{11} << 32U;
constexpr std::int64_t texts_are_longer = 2;  ///< than those of other controls, by this factor
constexpr std::uint64_t draws_of_a_step = 32;

/// Runs on, off and the reference, where there is one, along random tokens. `visit` takes the
/// logits of `on` and of another arm, and the step.
using VisitPair = std::function<Result<bool>(std::span<const double>, std::span<const double>,
                                             const softfloat::Format&, std::int64_t)>;
Result<bool> along_random_tokens(const StudySetup& setup, std::int64_t prompt,
                                 const VisitPair& visit) {
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  const Result<StudyArm> reference = reference_arm(setup);
  const auto ids = tokens_of(setup, prompt);
  std::vector<AlongArm> arms{{&*on, ids}, {&*off, ids}};
  if (reference) arms.push_back({&*reference, ids});
  const std::int64_t number = setup.prompts[static_cast<std::size_t>(prompt)].prompt.number;
  const std::uint64_t stream = first_stream + static_cast<std::uint64_t>(number);
  const auto vocabulary = static_cast<std::uint64_t>(setup.engine->vocabulary());
  const AlongOptions options{
      .new_tokens = texts_are_longer * setup.new_tokens, .choose = [&](const AlongStep& step) {
        const std::uint64_t bits = philox_bits(1, stream, static_cast<std::uint64_t>(step.step));
        return static_cast<TokenId>(bits % vocabulary);
      }};
  return along_text(arms, options, [&](const AlongStep& step) -> Result<bool> {
    for (std::size_t other = 1; other < step.passes.size(); ++other) {
      Result<bool> done = visit(step.passes[0].logits, step.passes[other].logits,
                                on->engine->logit_format(), step.step);
      if (!done) return done;
    }
    return true;
  });
}

/// Σ p of the tokens before each one, and of all: one more number than tokens.
Result<std::vector<double>> cumulative_probabilities(std::span<const double> logits) {
  const auto normalizer = softmax_normalizer(logits);
  if (!normalizer) return normalizer.error();
  std::vector<double> sums{0};
  sums.reserve(logits.size() + 1);
  for (const double logit : logits) {
    const double log = log_probability(*normalizer, logit);
    const double p = log < -700 ? 0 : exp_reference(DoubleDouble(log)).high;
    sums.push_back(sums.back() + p);
  }
  return sums;
}

/// Whether the number lies in a token's part of (0, 1), not closer to its ends than sums of
/// probabilities are known.
bool is_inside(const std::vector<double>& sums, std::int64_t token, double number) {
  constexpr double error = 0x1p-36;
  const auto at = static_cast<std::size_t>(token);
  return number > sums[at] + error && number < sums[at + 1] - error;
}

}  // namespace

Result<Json> measure_flips(const StudySetup& setup, std::int64_t prompt) {
  std::int64_t steps = 0;
  std::int64_t flips = 0;
  double largest = 0;  // margin of a flip, over twice the largest change of a logit
  const auto visit = [&](std::span<const double> on, std::span<const double> other,
                         const softfloat::Format& format, std::int64_t) -> Result<bool> {
    const Result<ForcedStep> step = compare_logits(on, other, format);
    if (!step) return step.error();
    ++steps;
    if (step->first_argmax == step->second_argmax) return true;
    ++flips;
    const std::optional<Margin>& margin = step->first_margin;
    if (!margin) return true;
    largest = std::max(largest, margin->logits / (2 * step->difference.largest));
    return true;
  };
  const auto done = along_random_tokens(setup, prompt, visit);
  if (!done) return done.error();
  return Json{{"steps", steps}, {"flips", flips}, {"largest_margin", largest}};
}

ControlVerdict judge_flips(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 11, verdict);
  if (values.empty()) return verdict;
  double largest = 0;
  std::int64_t flips = 0;
  for (const Json* const each : values) {
    largest = std::max(largest, each->at("largest_margin").get<double>());
    flips += each->at("flips").get<std::int64_t>();
  }
  verdict.checks.push_back({.what = fmt::format("margin / 2 max |dlogit|, of {} flips", flips),
                            .measured = largest,
                            .low = 0,
                            .high = 1});
  return verdict;
}

Result<Json> measure_sampling(const StudySetup& setup, std::int64_t prompt) {
  const auto number =
      static_cast<std::uint64_t>(setup.prompts[static_cast<std::size_t>(prompt)].prompt.number);
  std::uint64_t draws = 0;
  std::int64_t differing = 0;
  std::int64_t unexplained = 0;
  const auto visit = [&](std::span<const double> on, std::span<const double> other,
                         const softfloat::Format&, std::int64_t step) -> Result<bool> {
    const Result<std::vector<double>> sums = cumulative_probabilities(on);
    if (!sums) return sums.error();
    const Result<std::vector<double>> other_sums = cumulative_probabilities(other);
    if (!other_sums) return other_sums.error();
    const auto at = static_cast<std::uint64_t>(step);
    for (std::uint64_t seed = 1; seed <= draws_of_a_step; ++seed, ++draws) {
      const Sampling sampling{.temperature = 1, .seed = seed};
      const Result<std::int64_t> first = sample_token(on, sampling, number, at);
      if (!first) return first.error();
      const Result<std::int64_t> second = sample_token(other, sampling, number, at);
      if (!second) return second.error();
      if (*first == *second) continue;
      ++differing;
      const double drawn = sampling_uniform(seed, number, at);
      // A boundary has crossed the number only where it lies in another token's part now.
      if (is_inside(*other_sums, *first, drawn) || is_inside(*sums, *second, drawn)) ++unexplained;
    }
    return true;
  };
  const auto done = along_random_tokens(setup, prompt, visit);
  if (!done) return done.error();
  return Json{{"draws", draws}, {"differing", differing}, {"unexplained", unexplained}};
}

ControlVerdict judge_sampling(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 13, verdict);
  if (values.empty()) return verdict;
  double unexplained = 0;
  std::int64_t differing = 0;
  for (const Json* const each : values) {
    unexplained += each->at("unexplained").get<double>();
    differing += each->at("differing").get<std::int64_t>();
  }
  verdict.checks.push_back({.what = fmt::format("without a crossing, of {} draws apart", differing),
                            .measured = unexplained,
                            .low = 0,
                            .high = 0});
  return verdict;
}

}  // namespace kvsim::experiments
