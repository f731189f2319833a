// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "fuzz/property/groups.h"
#include "fuzz/property/wide_number.h"
#include "run/divergence.h"
#include "run/sampling.h"

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
});

}  // namespace

std::span<const Property> run_properties() { return table; }

}  // namespace kvsim::fuzz
