// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fuzz/flip/mutate.h"
#include "fuzz/flip/reference.h"
#include "softfloat/index.h"

/// Mutations that know what a sum of products is.
namespace kvsim::fuzz {
/// Makes the product of one term the negative of another's.
void Mutator::cancel_terms(FlipCase& child, Random& random) const {
  const std::int64_t terms = shape_.terms;
  const std::int64_t from = random.below(terms);
  const std::int64_t to = random.below(terms);
  const std::int64_t row = random.below(2) * terms;
  std::vector<float>& state = child[CaseTensor::state];
  std::vector<float>& tokens = child[CaseTensor::tokens];
  if (random.once_in(2)) state[index(to)] = state[index(from)];
  const double product =
      static_cast<double>(state[index(from)]) * static_cast<double>(tokens[index(row + from)]);
  tokens[index(row + to)] = fitter_.fit(CaseTensor::tokens, -product / state[index(to)]);
}

/// One large term, and a run of terms near half an ulp of it in the accumulator: added to it one by
/// one they tie or round away, added to each other first they count. The other token has the large
/// term alone.
void Mutator::absorb_terms(FlipCase& child, Random& random) const {
  const std::int64_t terms = shape_.terms;
  std::vector<float>& state = child[CaseTensor::state];
  std::vector<float>& tokens = child[CaseTensor::tokens];
  const std::int64_t large = random.once_in(4) ? random.below(terms) : 0;
  const std::int64_t row = random.below(2) * terms;
  const std::int64_t other = terms - row;
  const int state_exponent = static_cast<int>(random.between(-2, 3));
  const int token_exponent = static_cast<int>(random.between(-3, 0));
  state[index(large)] = fitter_.fit(CaseTensor::state, std::ldexp(1.0, state_exponent));
  const float token = fitter_.fit(CaseTensor::tokens, std::ldexp(1.0, token_exponent));
  tokens[index(row + large)] = token;
  tokens[index(other + large)] = token;
  // The sign with the large term, or against it, where an ulp is half as wide.
  const bool against = random.once_in(3);
  const int half_ulp = state_exponent + token_exponent - shape_.accumulator.precision -
                       static_cast<int>(against ? random.below(2) : 0);
  const double nearly = random.once_in(2) ? 1.0 : 1.0 + (random.unit() - 0.5) / 4;
  const std::int64_t count = random.once_in(2) ? terms : random.between(1, terms);
  const std::int64_t first = random.below(terms - count + 1);
  // Both factors must be normal, so a small product is shared between them.
  const int least = fitter_.storage().emin();
  const int lowest = std::max(least, half_ulp);
  const int highest = std::min(0, half_ulp - least);
  if (lowest > highest) return;
  for (std::int64_t k = first; k < first + count; ++k) {
    if (k == large) continue;
    const int part = static_cast<int>(random.between(lowest, highest));
    state[index(k)] = fitter_.fit(CaseTensor::state, std::ldexp(1.0, part));
    tokens[index(row + k)] = fitter_.fit(
        CaseTensor::tokens, (against ? -nearly : nearly) * std::ldexp(1.0, half_ulp - part));
    if (!random.once_in(8)) tokens[index(other + k)] = 0;
  }
}

/// Moves the exact difference of the logits to where the worse path of the parent would be just
/// wrong: number by number, each time the one that comes closest.
void Mutator::move_sum_margin(const FlipScore& score, FlipCase& child, Random& random) const {
  if (!score.is_finite()) return;
  const double side = score.exact < 0 ? -1 : 1;
  const double worse =
      side * std::min(side * score.paths[0].difference, side * score.paths[1].difference);
  // What the path's error is, in the parent; where it errs the other way, a guess.
  double error = score.exact - worse;
  if (side * error <= 0) error = side * score.bound() * random.unit() / 4;
  const double wanted =
      error * (random.once_in(2) ? 1 - std::ldexp(random.unit(), -4) : random.unit());
  double missing = wanted - exact_sum_difference(child).value.high;
  std::vector<float>& tokens = child[CaseTensor::tokens];
  const std::vector<float>& state = child[CaseTensor::state];
  for (int step = 0; step < 12 && std::abs(missing) > std::abs(wanted) / 64; ++step) {
    std::size_t chosen = 0;
    float chosen_token = tokens[0];
    double least = std::abs(missing);
    for (int tries = 0; tries < 6; ++tries) {
      const std::size_t i = index(random.below(2 * shape_.terms));
      const bool second = i >= state.size();
      const double factor = (second ? -1.0 : 1.0) * static_cast<double>(state[i % state.size()]);
      if (factor == 0) continue;
      const float moved = fitter_.fit(CaseTensor::tokens, tokens[i] + missing / factor);
      const double left =
          missing - factor * (static_cast<double>(moved) - static_cast<double>(tokens[i]));
      if (std::abs(left) >= least) continue;
      least = std::abs(left);
      chosen = i;
      chosen_token = moved;
    }
    const double factor =
        (chosen >= state.size() ? -1.0 : 1.0) * static_cast<double>(state[chosen % state.size()]);
    missing -= factor * (static_cast<double>(chosen_token) - static_cast<double>(tokens[chosen]));
    tokens[chosen] = chosen_token;
  }
}

}  // namespace kvsim::fuzz
