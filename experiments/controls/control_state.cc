// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "experiments/controls/compare_bits.h"
#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"
#include "experiments/metrics/plateau.h"
#include "experiments/protocol/along_text.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/protocol/transplant.h"
#include "sim/philox.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

/// Controls that put other numbers into a cache.
namespace kvsim::experiments {
namespace {

constexpr std::int64_t tokens_behind = 4;  ///< that are looked at behind a change of the cache
constexpr std::uint64_t noise_draws = 4;
constexpr std::uint64_t noise_stream = std::uint64_t{10} << 32U;

/// The cache over these tokens, before a pass over one more.
Result<Fork> fork_of(const StudyArm& arm, std::span<const TokenId> prompt) {
  Result<ArmSequence> text = arm.open(prompt, tokens_behind + 1);
  if (!text) return text.error();
  const Result<EnginePass> pass = text->next({});
  if (!pass) return pass.error();
  Result<std::unique_ptr<EngineSequence>> saved = text->sequence().save();
  if (!saved) return saved.error();
  Fork fork{std::move(*saved), {prompt.begin(), prompt.end()}};
  fork.tokens.push_back(static_cast<TokenId>(argmax_of(pass->logits)));
  return fork;
}

/// The recipient's pass and tokens with a donor's numbers, or its own, in its cache.
struct Outcome {
  std::vector<double> logits;
  std::vector<std::int64_t> tokens;
};

Result<Outcome> outcome_of(const Fork& donor, const Fork& recipient, const CacheMask& mask) {
  Result<PatchedPass> patched = patched_pass(donor, {}, recipient, {.cache = mask, .hidden = {}});
  if (!patched) return patched.error();
  Outcome outcome{std::move(patched->pass.logits), {}};
  const Result<std::vector<std::int64_t>> tokens =
      greedy_continuation(patched->fork, argmax_of(outcome.logits), tokens_behind);
  if (!tokens) return tokens.error();
  outcome.tokens = *tokens;
  return outcome;
}

bool is_same(const Outcome& first, const Outcome& second) {
  return same_bits(first.logits, second.logits) && first.tokens == second.tokens;
}

}  // namespace

Result<Json> measure_transplant(const StudySetup& setup, std::int64_t prompt) {
  const auto partners = metrics::unrelated_partners(std::ssize(setup.prompts), 1);
  if (!partners) return not_applicable("one prompt has no other to take a cache from");
  const Arm live = with_constructor(setup.on, CacheConstructor::live);
  const Result<StudyArm> arm = prepare(*setup.engine, live);
  if (!arm) return arm.error();
  const auto ours = tokens_of(setup, prompt);
  const auto theirs = tokens_of(setup, (*partners)[static_cast<std::size_t>(prompt)]);
  const std::size_t length = std::min(ours.size(), theirs.size());
  Result<Fork> recipient = fork_of(*arm, ours.first(length));
  if (!recipient) return recipient.error();
  Result<Fork> donor = fork_of(*arm, theirs.first(length));
  if (!donor) return donor.error();
  donor->tokens.back() = recipient->tokens.back();
  std::int64_t identity_differs = 0;
  std::int64_t follows = 0;
  std::int64_t keys_follow = 0;
  std::int64_t values_follow = 0;
  for (const auto& [from, to] :
       {std::pair(&*donor, &*recipient), std::pair(&*recipient, &*donor)}) {
    const CacheMask nothing;  // no rows
    const CacheMask all = whole_cache(to->sequence->state_shape(), to->cached_rows());
    CacheMask keys = all;
    keys.values = false;
    CacheMask values = all;
    values.keys = false;
    const Result<Outcome> of_donor = outcome_of(*from, *from, nothing);
    if (!of_donor) return of_donor.error();
    const Result<Outcome> of_recipient = outcome_of(*to, *to, nothing);
    if (!of_recipient) return of_recipient.error();
    const Result<Outcome> identity = outcome_of(*to, *to, all);
    if (!identity) return identity.error();
    identity_differs += is_same(*identity, *of_recipient) ? 0 : 1;
    for (const auto& [mask, count] : {std::pair(all, &follows), std::pair(keys, &keys_follow),
                                      std::pair(values, &values_follow)}) {
      const Result<Outcome> patched = outcome_of(*from, *to, mask);
      if (!patched) return patched.error();
      *count += is_same(*patched, *of_donor) ? 1 : 0;
    }
  }
  return Json{{"directions", 2},
              {"identity_differs", identity_differs},
              {"follows", follows},
              {"keys_alone_follow", keys_follow},
              {"values_alone_follow", values_follow}};
}

ControlVerdict judge_transplant(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 9, verdict);
  if (values.empty()) return verdict;
  double directions = 0;
  double follows = 0;
  double identity = 0;
  for (const Json* const each : values) {
    directions += each->at("directions").get<double>();
    follows += each->at("follows").get<double>();
    identity += each->at("identity_differs").get<double>();
  }
  verdict.checks.push_back({.what = "share that follows the donor, bit for bit",
                            .measured = follows / directions,
                            .low = 1,
                            .high = 1});
  verdict.checks.push_back(
      {.what = "own cache put back: other bits", .measured = identity, .low = 0, .high = 0});
  return verdict;
}

namespace {

/// Indices 0 … count − 1 in a random order.
std::vector<std::size_t> random_order(std::size_t count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[philox_bits(seed, stream, i) % i]);
  }
  return order;
}

double rounded_to(const softfloat::Format& format, double value) {
  const softfloat::Bits code =
      softfloat::convert(format, softfloat::binary64, softfloat::from_double(value)).bits;
  return softfloat::to_double(format, code);
}

/// One row of keys or values: `real` differs from `own`; the result does in other elements and with
/// other signs.
std::vector<double> with_noise(const softfloat::Format& format, std::span<const double> own,
                               std::span<const double> real, std::uint64_t seed,
                               std::uint64_t stream) {
  const std::vector<std::size_t> order = random_order(own.size(), seed, stream);
  std::vector<double> noisy(own.begin(), own.end());
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    const double size = std::abs(real[order[i]] - own[order[i]]);
    const bool is_negative = (philox_bits(seed, stream, i) >> 63U) != 0;
    noisy[i] = rounded_to(format, own[i] + (is_negative ? -size : size));
  }
  return noisy;
}

/// Puts noise of the size of donor − recipient into the recipient's cache, row by row.
Result<bool> add_noise(const EngineSequence& donor, EngineSequence& recipient, std::int64_t rows,
                       std::uint64_t seed) {
  const StateShape shape = recipient.state_shape();
  std::uint64_t stream = noise_stream;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      for (std::int64_t row = 0; row < rows; ++row, ++stream) {
        const StateBlock block{layer, part, row, 1};
        const Result<std::vector<double>> own = recipient.state(block);
        if (!own) return own.error();
        const Result<std::vector<double>> real = donor.state(block);
        if (!real) return real.error();
        if (same_bits(*own, *real)) continue;
        const std::vector<double> noisy = with_noise(shape.format, *own, *real, seed, stream);
        const Result<bool> done = recipient.set_state(block, noisy);
        if (!done) return done;
      }
    }
  }
  return true;
}

/// The mean square of what a changed cache does to the logits of the next tokens.
Result<double> response(const Fork& plain, const Fork& changed) {
  Result<Fork> one = plain.copy();
  if (!one) return one.error();
  Result<Fork> two = changed.copy();
  if (!two) return two.error();
  double sum = 0;
  double count = 0;
  for (std::int64_t step = 0; step < tokens_behind; ++step) {
    const Result<EnginePass> first = one->pass({});
    if (!first) return first.error();
    const Result<EnginePass> second = two->pass({});
    if (!second) return second.error();
    for (std::size_t i = 0; i < first->logits.size(); ++i) {
      const double difference = first->logits[i] - second->logits[i];
      sum += difference * difference;
    }
    count += static_cast<double>(first->logits.size());
    const auto token = static_cast<TokenId>(argmax_of(first->logits));
    one->tokens.push_back(token);
    two->tokens.push_back(token);
  }
  return sum / count;
}

}  // namespace

Result<Json> measure_noise(const StudySetup& setup, std::int64_t prompt) {
  const Arm live = with_constructor(setup.on, CacheConstructor::live);
  const Result<StudyArm> on = prepare(*setup.engine, live);
  if (!on) return on.error();
  const Result<StudyArm> off = prepare(*setup.engine, with_formats_of(setup.off, live));
  if (!off) return off.error();
  const auto ids = tokens_of(setup, prompt);
  const std::array arms{AlongArm{&*on, ids}, AlongArm{&*off, ids}};
  std::vector<Fork> forks;
  const auto keep = [&](const AlongStep& step) -> Result<bool> {
    if (step.step + 1 < setup.new_tokens) return true;
    for (const ArmSequence& sequence : step.sequences) {
      Result<std::unique_ptr<EngineSequence>> saved = sequence.sequence().save();
      if (!saved) return saved.error();
      forks.push_back({std::move(*saved), {sequence.tokens().begin(), sequence.tokens().end()}});
      forks.back().tokens.push_back(static_cast<TokenId>(argmax_of(step.passes[0].logits)));
    }
    return true;
  };
  const auto done = along_text(arms, {.new_tokens = setup.new_tokens}, keep);
  if (!done) return done.error();
  const Fork& plain = forks[0];
  Result<Fork> real = plain.copy();
  if (!real) return real.error();
  const std::int64_t rows = plain.cached_rows();
  const CacheMask all = whole_cache(plain.sequence->state_shape(), rows);
  const auto moved = transplant(*forks[1].sequence, *real->sequence, all);
  if (!moved) return moved.error();
  const Result<double> of_real = response(plain, *real);
  if (!of_real) return of_real.error();
  double of_noise = 0;
  for (std::uint64_t seed = 1; seed <= noise_draws; ++seed) {
    Result<Fork> noisy = plain.copy();
    if (!noisy) return noisy.error();
    const auto added = add_noise(*forks[1].sequence, *noisy->sequence, rows, seed);
    if (!added) return added.error();
    const Result<double> each = response(plain, *noisy);
    if (!each) return each.error();
    of_noise += *each / static_cast<double>(noise_draws);
  }
  return Json{{"real", *of_real}, {"noise", of_noise}};
}

ControlVerdict judge_noise(const ControlRecords& records) {
  const double factor = noise_allowance().factor;
  ControlVerdict verdict;
  double real = 0;
  double noise = 0;
  for (const Json* const each : measured_values(records, 10, verdict)) {
    real += each->at("real").get<double>();
    noise += each->at("noise").get<double>();
  }
  if (real == 0 && noise == 0) {
    if (verdict.reasons.empty()) {
      add_reason(verdict, "", "the two caches give the same bits, there is no size to match");
    }
    return verdict;
  }
  verdict.checks.push_back({.what = "rms |dlogit| of noise / of the real path",
                            .measured = std::sqrt(noise / real),
                            .low = 1 / factor,
                            .high = factor});
  return verdict;
}

}  // namespace kvsim::experiments
