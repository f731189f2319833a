// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"
#include "experiments/protocol/along_text.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/tables.h"
#include "run/divergence.h"
#include "run/sampling.h"
#include "sim/double_double.h"
#include "sim/exp.h"
#include "sim/philox.h"
#include "sim/predict/confidence.h"
#include "sim/predict/rounding.h"

/// Controls of which token is chosen. Their texts are random tokens: margins are smaller there than
/// in a model's own text. Even so greedy tokens seldom flip in so few steps; pairs of likely tokens
/// change places more often.
namespace kvsim::experiments {
namespace {

/// Random streams begin here: those of prompts and of sampling lie elsewhere.
constexpr std::uint64_t first_stream = std::uint64_t{11} << 32U;
constexpr std::int64_t texts_are_longer = 2;  ///< than those of other controls, by this factor
constexpr std::uint64_t draws_of_a_step = 32;

/// The arms of a setup, and what predict says of them.
struct TokenArms {
  StudyArm on;
  StudyArm off;
  std::optional<StudyArm> reference;  ///< the widest, where there is one
};

Result<TokenArms> token_arms(const StudySetup& setup) {
  Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  Result<StudyArm> off = prepare(*setup.engine, setup.off);
  if (!off) return off.error();
  TokenArms arms{std::move(*on), std::move(*off), {}};
  if (Result<StudyArm> reference = reference_arm(setup)) arms.reference = std::move(*reference);
  return arms;
}

/// The logits of `on` and of another arm at a step.
struct TokenPair {
  std::span<const double> on;
  std::span<const double> other;
  std::int64_t step = 0;
  bool is_reference = false;  ///< the other arm
};

/// Runs all arms along random tokens; `visit` takes `on` beside each other one.
Result<bool> along_random_tokens(const StudySetup& setup, std::int64_t prompt, const TokenArms& all,
                                 const std::function<Result<bool>(const TokenPair&)>& visit) {
  const auto ids = tokens_of(setup, prompt);
  std::vector<AlongArm> arms{{&all.on, ids}, {&all.off, ids}};
  if (const std::optional<StudyArm>& reference = all.reference) arms.push_back({&*reference, ids});
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
      Result<bool> done = visit({.on = step.passes[0].logits,
                                 .other = step.passes[other].logits,
                                 .step = step.step,
                                 .is_reference = other == 2});
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

/// Tokens of which every pair is looked at: those with the largest logits.
constexpr std::size_t leading_tokens = 16;
/// That the largest of so many changes stays below its bound, where they are normal.
constexpr double confidence = 0.95;

/// Pairs of tokens that change places.
struct Swaps {
  std::int64_t pairs = 0;
  std::int64_t swapped = 0;
  /// Their largest margin, the difference of the two logits of `on`: over twice the largest change
  /// of a logit, and over the standard deviation that predict gives the difference's change.
  double over_change = 0;
  double over_predicted = 0;
};

/// What predict says of the arms of a pair that round.
struct PairErrors {
  LogitErrors on;
  LogitErrors off;
};

Result<PairErrors> pair_errors(const TokenArms& arms) {
  const Result<std::vector<double>> on = predicted_drift_of(arms.on);
  if (!on) return on.error();
  const Result<std::vector<double>> off = predicted_drift_of(arms.off);
  if (!off) return off.error();
  return PairErrors{{on->back(), arms.on.engine->logit_format()},
                    {off->back(), arms.off.engine->logit_format()}};
}

std::vector<std::size_t> leading(std::span<const double> logits) {
  std::vector<std::size_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t count = std::min(leading_tokens, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::size_t a, std::size_t b) {
                              return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                            });
  order.resize(count);
  return order;
}

void add_swaps(Swaps& swaps, const TokenPair& pair, const std::optional<PairErrors>& errors) {
  const double largest = logit_difference(pair.on, pair.other).largest;
  const LogitVariance on(pair.on, errors ? errors->on : LogitErrors{});
  const LogitVariance off(pair.other, errors ? errors->off : LogitErrors{});
  const auto variance = [&](std::size_t token) {
    return on(pair.on[token]) + (pair.is_reference ? 0 : off(pair.other[token]));
  };
  const std::vector<std::size_t> order = leading(pair.on);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      ++swaps.pairs;
      const double margin = pair.on[order[i]] - pair.on[order[j]];
      if (!(margin > 0) || pair.other[order[i]] >= pair.other[order[j]]) continue;
      ++swaps.swapped;
      swaps.over_change = std::max(swaps.over_change, margin / (2 * largest));
      if (!errors) continue;
      const double deviation = std::sqrt(variance(order[i]) + variance(order[j]));
      swaps.over_predicted = std::max(swaps.over_predicted, margin / deviation);
    }
  }
}

}  // namespace

Result<Json> measure_flips(const StudySetup& setup, std::int64_t prompt) {
  const Result<TokenArms> arms = token_arms(setup);
  if (!arms) return arms.error();
  const Result<PairErrors> predicted = pair_errors(*arms);
  std::optional<PairErrors> errors;
  if (predicted) errors = *predicted;
  Swaps swaps;
  std::int64_t steps = 0;
  std::int64_t flips = 0;
  const auto visit = [&](const TokenPair& pair) -> Result<bool> {
    ++steps;
    if (argmax_of(pair.on) != argmax_of(pair.other)) ++flips;
    add_swaps(swaps, pair, errors);
    return true;
  };
  const auto done = along_random_tokens(setup, prompt, *arms, visit);
  if (!done) return done.error();
  Json values = {{"steps", steps},
                 {"flips", flips},
                 {"pairs", swaps.pairs},
                 {"swaps", swaps.swapped},
                 {"over_change", json_of(swaps.over_change)}};
  if (errors) {
    values["over_predicted"] = json_of(swaps.over_predicted);
  } else {
    values["prediction_reason"] = predicted.error().message;
  }
  return values;
}

ControlVerdict judge_flips(const ControlRecords& records) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ControlVerdict verdict;
  const auto values = measured_values(records, 11, verdict);
  if (values.empty()) return verdict;
  double over_change = 0;
  double over_predicted = 0;
  std::int64_t pairs = 0;
  std::int64_t swaps = 0;
  std::int64_t steps = 0;
  bool is_predicted = true;
  for (const Json* const each : values) {
    steps += each->at("steps").get<std::int64_t>();
    pairs += each->at("pairs").get<std::int64_t>();
    swaps += each->at("swaps").get<std::int64_t>();
    over_change = std::max(over_change, number_of(each->at("over_change")).value_or(infinity));
    if (!each->contains("over_predicted")) {
      is_predicted = false;
      add_reason(verdict, "by predict", each->at("prediction_reason").get<std::string>());
      continue;
    }
    over_predicted =
        std::max(over_predicted, number_of(each->at("over_predicted")).value_or(infinity));
  }
  if (swaps == 0) {
    add_reason(verdict, "",
               fmt::format("cannot tell: no two of the {} largest logits change places in {} steps",
                           leading_tokens, steps));
    return verdict;
  }
  const std::string of = fmt::format("of {} swaps", swaps);
  if (is_predicted) {
    const double largest = largest_normal_quantile(1, pairs, confidence);
    verdict.checks.push_back({.what = fmt::format("margin / predicted sd, {}", of),
                              .measured = over_predicted,
                              .low = 0,
                              .high = step_allowance().factor * largest,
                              .predicted = largest});
  }
  verdict.checks.push_back({.what = fmt::format("margin / 2 max |dlogit|, {}", of),
                            .measured = over_change,
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
  const Result<TokenArms> arms = token_arms(setup);
  if (!arms) return arms.error();
  const auto visit = [&](const TokenPair& pair) -> Result<bool> {
    const Result<std::vector<double>> sums = cumulative_probabilities(pair.on);
    if (!sums) return sums.error();
    const Result<std::vector<double>> other_sums = cumulative_probabilities(pair.other);
    if (!other_sums) return other_sums.error();
    const auto at = static_cast<std::uint64_t>(pair.step);
    for (std::uint64_t seed = 1; seed <= draws_of_a_step; ++seed, ++draws) {
      const Sampling sampling{.temperature = 1, .seed = seed};
      const Result<std::int64_t> first = sample_token(pair.on, sampling, number, at);
      if (!first) return first.error();
      const Result<std::int64_t> second = sample_token(pair.other, sampling, number, at);
      if (!second) return second.error();
      if (*first == *second) continue;
      ++differing;
      const double drawn = sampling_uniform(seed, number, at);
      // A boundary has crossed the number only where it lies in another token's part now.
      if (is_inside(*other_sums, *first, drawn) || is_inside(*sums, *second, drawn)) ++unexplained;
    }
    return true;
  };
  const auto done = along_random_tokens(setup, prompt, *arms, visit);
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
