// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/property/draw_arm.h"
#include "fuzz/property/groups.h"
#include "fuzz/property/wide_number.h"
#include "run/divergence.h"
#include "run/sampling.h"
#include "run/sim_sequence.h"

namespace kvsim::fuzz {
namespace {

constexpr mpfr_prec_t bits = 400;
using Logits = std::vector<double>;

Logits draw_logits(Random& random) {
  const double spread = std::ldexp(1, static_cast<int>(random.between(-3, 4)));
  std::vector<float> numbers(static_cast<std::size_t>(random.between(2, 40)));
  random.gaussians(numbers);
  Logits logits;
  logits.reserve(numbers.size());
  for (const float x : numbers) logits.push_back(x * spread);
  return logits;
}

/// The same logits, each moved by at most `largest`.
Logits moved(Random& random, const Logits& logits, double largest) {
  Logits result;
  result.reserve(logits.size());
  for (const double x : logits) result.push_back(x + (2 * random.unit() - 1) * largest);
  return result;
}

/// Probabilities of a softmax in MPFR.
std::vector<WideNumber> probabilities(const Logits& logits) {
  std::vector<WideNumber> result;
  result.reserve(logits.size());
  WideNumber sum(bits);
  for (const double x : logits) {
    WideNumber e(bits, x);
    mpfr_exp(e.get(), e.get(), MPFR_RNDN);
    mpfr_add(sum.get(), sum.get(), e.get(), MPFR_RNDN);
    result.push_back(e);
  }
  for (WideNumber& p : result) mpfr_div(p.get(), p.get(), sum.get(), MPFR_RNDN);
  return result;
}

/// Σ p log(p ÷ q).
double kl_by_mpfr(const std::vector<WideNumber>& p, const std::vector<WideNumber>& q) {
  WideNumber sum(bits);
  WideNumber term(bits);
  for (std::size_t i = 0; i < p.size(); ++i) {
    mpfr_div(term.get(), p[i].get(), q[i].get(), MPFR_RNDN);
    mpfr_log(term.get(), term.get(), MPFR_RNDN);
    mpfr_mul(term.get(), term.get(), p[i].get(), MPFR_RNDN);
    mpfr_add(sum.get(), sum.get(), term.get(), MPFR_RNDN);
  }
  return sum.to_double();
}

Violation divergences_are_mpfrs(PropertyInput& input) {
  const Logits p = draw_logits(input.random);
  const Logits q =
      moved(input.random, p, std::ldexp(1, static_cast<int>(input.random.between(-30, 4))));
  const auto forward = divergence(p, q);
  const auto backward = divergence(q, p);
  const auto none = divergence(p, p);
  if (!forward) return forward.error().message;
  if (!backward) return backward.error().message;
  if (!none) return none.error().message;
  if (none->kl != 0 || none->js != 0) {
    return fmt::format("equal logits: KL {:a}, JS {:a}", none->kl, none->js);
  }
  constexpr double slack = 1 + 0x1p-44;
  if (forward->kl < 0 || forward->js < 0 || forward->js > std::numbers::ln2 * slack) {
    return fmt::format("KL {:a} and JS {:a}: KL is 0 or more, JS from 0 to log 2", forward->kl,
                       forward->js);
  }
  if (std::fabs(forward->js - backward->js) > 0x1p-44 * forward->js) {
    return fmt::format("JS is {:a} one way and {:a} the other", forward->js, backward->js);
  }
  const double exact = kl_by_mpfr(probabilities(p), probabilities(q));
  // MPFR's own sum is good to about 2^-380.
  const double allowed = exact * divergence_relative_error * 2 + divergence_floor * 2;
  if (std::fabs(forward->kl - exact) <= allowed) return std::nullopt;
  return fmt::format("{} logits: KL is {:a}, not {:a}", p.size(), forward->kl, exact);
}

Violation small_changes_stay_small(PropertyInput& input) {
  const Logits p = draw_logits(input.random);
  const double largest = std::ldexp(1, static_cast<int>(input.random.between(-10, 2)));
  const Logits q = moved(input.random, p, largest);
  double eta = 0;
  double lowest = q[0] - p[0];
  double highest = lowest;
  for (std::size_t i = 0; i < p.size(); ++i) {
    eta = std::max(eta, std::fabs(q[i] - p[i]));
    lowest = std::min(lowest, q[i] - p[i]);
    highest = std::max(highest, q[i] - p[i]);
  }
  const auto of_p = softmax_normalizer(p);
  const auto of_q = softmax_normalizer(q);
  if (!of_p) return of_p.error().message;
  if (!of_q) return of_q.error().message;
  WideNumber distance(bits);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = log_probability(*of_p, p[i]);
    const double log_q = log_probability(*of_q, q[i]);
    if (std::fabs(log_q - log_p) > 2 * eta * (1 + 0x1p-30)) {
      return fmt::format("a probability moves by the factor e^{:a} while logits move by {:a}",
                         log_q - log_p, eta);
    }
    WideNumber x(bits, log_p);
    WideNumber y(bits, log_q);
    mpfr_exp(x.get(), x.get(), MPFR_RNDN);
    mpfr_exp(y.get(), y.get(), MPFR_RNDN);
    mpfr_sub(x.get(), x.get(), y.get(), MPFR_RNDN);
    mpfr_abs(x.get(), x.get(), MPFR_RNDN);
    mpfr_add(distance.get(), distance.get(), x.get(), MPFR_RNDN);
  }
  const double total_variation = distance.to_double() / 2;
  // A shift of all logits changes nothing, so half of what they move apart is what counts.
  const double bound = by_mpfr(mpfr_tanh, (highest - lowest) / 4);
  if (total_variation <= bound * (1 + 0x1p-30) + 0x1p-48) return std::nullopt;
  return fmt::format("total variation {:a} while logits move by {:a} to {:a}: at most {:a}",
                     total_variation, lowest, highest, bound);
}

Violation draws_depend_on_their_place(PropertyInput& input) {
  const std::uint64_t seed = input.random.bits();
  constexpr std::size_t prompts = 4;
  constexpr std::size_t steps = 4;
  std::vector<double> numbers;
  numbers.reserve(prompts * steps);
  for (std::size_t prompt = 0; prompt < prompts; ++prompt) {
    for (std::size_t step = 0; step < steps; ++step) {
      numbers.push_back(sampling_uniform(seed, prompt, step));
    }
  }
  // Another batch: other prompts between, and the steps in another order.
  const Logits logits = draw_logits(input.random);
  const Sampling sampling{.temperature = 1, .seed = seed};
  for (std::size_t i = numbers.size(); i-- > 0;) {
    const auto neighbour = sample_token(logits, sampling, 100 + i, i);
    if (!neighbour) return neighbour.error().message;
    const double again = sampling_uniform(seed, i / steps, i % steps);
    if (again != numbers[i]) {
      return fmt::format("prompt {}, step {}: {:a}, and {:a} beside other prompts", i / steps,
                         i % steps, numbers[i], again);
    }
  }
  std::vector<double> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return std::nullopt;
  return fmt::format("seed {}: {:a} is drawn twice among {} prompts of {} steps", seed, *twice,
                     prompts, steps);
}

/// A sequence over some tokens, one step before the next one.
class Patient {
 public:
  static Result<Patient> make(const ArmSetup& setup, std::vector<TokenId> tokens, TokenId next) {
    const std::int64_t rows = std::ssize(tokens);
    auto opened = open_sequence(setup, {.prompt_tokens = rows});
    if (!opened) return opened.error();
    const auto prompt = (*opened)->pass(tokens, {0, rows, 0}, {});
    if (!prompt) return prompt.error();
    tokens.push_back(next);
    return Patient(std::move(tokens), std::move(*opened));
  }

  /// The pass over the next token.
  [[nodiscard]] Result<EnginePass> next(std::span<const HiddenReplacement> replaced = {}) const {
    const std::int64_t rows = std::ssize(tokens_) - 1;
    const PassRequest request{.layer_values = true, .replaced = replaced};
    return sequence_->pass(tokens_, {rows, 1, rows}, request);
  }

  /// Takes all keys and values of another sequence of as many rows, in blocks of rows that end
  /// somewhere.
  [[nodiscard]] Result<bool> take(const Patient& donor, Random& random) const {
    const std::int64_t rows = std::ssize(tokens_) - 1;
    for (std::int64_t layer = 0; layer < sequence_->state_shape().layers; ++layer) {
      for (const KvPart part : {KvPart::key, KvPart::value}) {
        const std::int64_t first_rows = random.between(1, rows);
        for (const StateBlock& block : {StateBlock{layer, part, 0, first_rows},
                                        StateBlock{layer, part, first_rows, rows - first_rows}}) {
          if (block.rows == 0) continue;
          const auto numbers = donor.sequence_->state(block);
          if (!numbers) return numbers.error();
          if (const auto done = sequence_->set_state(block, *numbers); !done) return done;
        }
      }
    }
    return true;
  }

 private:
  Patient(std::vector<TokenId> tokens, std::unique_ptr<EngineSequence> sequence)
      : tokens_(std::move(tokens)), sequence_(std::move(sequence)) {}

  std::vector<TokenId> tokens_;
  std::unique_ptr<EngineSequence> sequence_;
};

/// Hidden states of a pass, as replacements in another one.
std::vector<HiddenReplacement> hidden_of(const EnginePass& pass) {
  std::vector<HiddenReplacement> result;
  result.reserve(pass.values.size());
  for (const StateValues& one : pass.values) result.push_back({one.layer, 0, one.values});
  return result;
}

Violation patches_are_what_they_hold(PropertyInput& input) {
  constexpr auto dispatches = std::to_array<std::string_view>(
      {"h100", "a100", "cpu", "fp32", "batch-invariant", "exact", "binary64"});
  const auto arm = draw_arm(input, dispatches);
  if (!arm) return arm.error().message;
  const ArmSetup setup{&arm->model.shape(), &arm->model.weights(), arm->options};
  const std::int64_t vocabulary = arm->model.shape().vocabulary;
  const std::int64_t rows = input.random.between(1, 8);
  const auto next = static_cast<TokenId>(input.random.below(vocabulary));
  const auto recipient = Patient::make(setup, draw_tokens(input.random, rows, vocabulary), next);
  const auto donor = Patient::make(setup, draw_tokens(input.random, rows, vocabulary), next);
  if (!recipient) return recipient.error().message;
  if (!donor) return donor.error().message;
  const auto before = recipient->next();
  const auto of_donor = donor->next();
  if (!before) return before.error().message;
  if (!of_donor) return of_donor.error().message;
  const auto expect = [&](const Result<EnginePass>& pass, const EnginePass& expected,
                          std::string_view how) -> Violation {
    if (!pass) return pass.error().message;
    for (std::size_t i = 0; i < expected.logits.size(); ++i) {
      if (pass->logits[i] == expected.logits[i]) continue;
      return fmt::format("{}, {} rows: logit {} is {:a} {}, not {:a}", arm->text(), rows, i,
                         pass->logits[i], how, expected.logits[i]);
    }
    return std::nullopt;
  };
  if (const auto done = recipient->take(*recipient, input.random); !done) {
    return done.error().message;
  }
  Violation violation = expect(recipient->next(hidden_of(*before)), *before, "with its own state");
  if (violation) return violation;
  const std::vector<HiddenReplacement> theirs = hidden_of(*of_donor);
  violation = expect(recipient->next(theirs), *of_donor, "with the donor's hidden states");
  if (violation) return violation;
  if (const auto done = recipient->take(*donor, input.random); !done) return done.error().message;
  return expect(recipient->next(), *of_donor, "with the donor's keys and values");
}

constexpr auto table = std::to_array<Property>({
    {"divergences-are-mpfrs",
     "KL is MPFR's within its stated error, 0 for equal logits and never negative; JS is symmetric "
     "and at most log 2",
     "Kullback and Leibler 1951; Lin 1991; MPFR", divergences_are_mpfrs},
    {"small-changes-stay-small",
     "logits that move by at most h move no probability by more than the factor e^2h, and the "
     "distribution by at most tanh(h/2)",
     "total variation of two softmaxes", small_changes_stay_small},
    {"draws-depend-on-their-place",
     "the random number of a token depends on seed, prompt and step alone, and none comes twice",
     "docs/run.md", draws_depend_on_their_place},
    {"patches-are-what-they-hold",
     "a sequence whose state is set to its own goes on as it did, and with another one's keys and "
     "values, or its hidden states, as that one",
     "a decoder is a function of its cache and the next token", patches_are_what_they_hold},
});

}  // namespace

std::span<const Property> run_properties() { return table; }

}  // namespace kvsim::fuzz
