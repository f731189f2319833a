// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/layer_gains.h"

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>

#include "run/margin.h"
#include "sim/engine/columns.h"
#include "sim/random_weights.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

/// Far above rounding, and small.
constexpr double noise_share = 0.02;
/// The same where logits are rounded behind it.
constexpr double logit_noise_share = 0.1;
constexpr std::uint64_t logit_draws = 4;

/// The hidden states of a pass, by layer.
std::vector<std::vector<double>> hidden_of(const EnginePass& pass) {
  std::vector<std::vector<double>> states;
  for (const StateValues& each : pass.values) {
    if (each.operation == "hidden") states.push_back(each.values);
  }
  return states;
}

/// The state with noise, numbers of the format.
Result<std::vector<double>> with_noise(const std::vector<double>& state,
                                       const softfloat::Format& format, double share,
                                       std::uint64_t seed, std::uint64_t layer) {
  constexpr std::uint64_t stream = 0x6761696e << 8;  // "gain"
  double squares = 0;
  for (const double x : state) squares += x * x;
  const double size = share * std::sqrt(squares / static_cast<double>(state.size()));
  std::vector<float> noise(state.size());
  Result<bool> done = fill_random_weights(
      {seed, stream | layer, softfloat::binary32, static_cast<float>(size)}, 0, noise);
  if (!done) return done.error();
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<float>(static_cast<double>(noise[i]) + state[i]);
  }
  done = round_values(format, noise, noise);
  if (!done) return done.error();
  return std::vector<double>(noise.begin(), noise.end());
}

/// ‖(d − c) − (b − a)‖ ÷ ‖c − a‖ of states a, c before and b, d behind a layer.
double gain_of(std::span<const double> a, std::span<const double> b, std::span<const double> c,
               std::span<const double> d) {
  double read = 0;
  double added = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double change = c[i] - a[i];
    const double other = d[i] - b[i] - change;
    read += change * change;
    added += other * other;
  }
  return read > 0 ? std::sqrt(added / read) : 0;
}

/// ‖b − a‖ ÷ ‖a‖, squared.
double relative_square(std::span<const double> a, std::span<const double> b) {
  double change = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    change += (b[i] - a[i]) * (b[i] - a[i]);
    squares += a[i] * a[i];
  }
  return squares > 0 ? change / squares : 0;
}

}  // namespace

Result<std::vector<double>> layer_gains(const ArmSequence& text, const softfloat::Format& format,
                                        std::uint64_t seed) {
  const Result<std::unique_ptr<EngineSequence>> copy = text.sequence().save();
  if (!copy) return copy.error();
  const std::int64_t last = std::ssize(text.tokens()) - 1;
  const PlanStep step{.first_row = last, .rows = 1, .cached_rows = last};
  const Result<EnginePass> plain = (*copy)->pass(text.tokens(), step, {.layer_values = true});
  if (!plain) return plain.error();
  const std::vector<std::vector<double>> states = hidden_of(*plain);
  std::vector<double> gains;
  for (std::size_t layer = 1; layer < states.size(); ++layer) {
    const Result<std::vector<double>> noisy =
        with_noise(states[layer - 1], format, noise_share, seed, static_cast<std::uint64_t>(layer));
    if (!noisy) return noisy.error();
    const std::vector<HiddenReplacement> replaced{
        {.layer = static_cast<std::int64_t>(layer) - 1, .row = 0, .values = *noisy}};
    const Result<EnginePass> moved =
        (*copy)->pass(text.tokens(), step, {.layer_values = true, .replaced = replaced});
    if (!moved) return moved.error();
    gains.push_back(gain_of(states[layer - 1], states[layer], *noisy, hidden_of(*moved)[layer]));
  }
  return gains;
}

Result<double> top_logits_gain(const ArmSequence& text, const softfloat::Format& format,
                               double step, std::uint64_t seed) {
  const Result<std::unique_ptr<EngineSequence>> copy = text.sequence().save();
  if (!copy) return copy.error();
  const std::int64_t last = std::ssize(text.tokens()) - 1;
  const PlanStep pass{.first_row = last, .rows = 1, .cached_rows = last};
  const Result<EnginePass> plain = (*copy)->pass(text.tokens(), pass, {.layer_values = true});
  if (!plain) return plain.error();
  const std::vector<TokenLogit> top = largest_logits(plain->logits, 2);
  const std::vector<std::vector<double>> states = hidden_of(*plain);
  if (top.size() < 2 || states.empty()) return 0.0;
  const std::int64_t layer = std::ssize(states) - 1;
  double read = 0;
  double moved = 0;
  for (std::uint64_t draw = 0; draw < logit_draws; ++draw) {
    const auto noisy = with_noise(states.back(), format, logit_noise_share, seed,
                                  static_cast<std::uint64_t>(layer + 1) + (draw << 16));
    if (!noisy) return noisy.error();
    const std::vector<HiddenReplacement> replaced{{.layer = layer, .row = 0, .values = *noisy}};
    const Result<EnginePass> other = (*copy)->pass(text.tokens(), pass, {.replaced = replaced});
    if (!other) return other.error();
    read += relative_square(states.back(), *noisy);
    for (const TokenLogit& each : top) {
      const double change = other->logits[static_cast<std::size_t>(each.token)] - each.logit;
      moved += (change * change - step * step / 6) / 2;
    }
  }
  return moved > 0 && read > 0 ? std::sqrt(moved / read) : 0.0;
}

}  // namespace kvsim::experiments
