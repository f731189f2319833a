// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/objective.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fuzz/flip/ranges.h"
#include "run/divergence.h"

namespace kvsim::fuzz {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double sign_of(double x) { return std::signbit(x) ? -1 : 1; }

/// The larger of both paths' claims; those that hold nothing are smaller than any other.
template <class PathValue>
Claim larger_of_paths(const PathValue& value) {
  Claim result;
  for (const std::size_t path : {path_on, path_off}) {
    const double one = value(path);
    if (std::isnan(one) || (result.holds() && one <= result.value)) continue;
    result = {one, path};
  }
  return result;
}

bool is_apart(const Confirmation& confirmed) { return confirmed.margin() > 0; }

bool all_finite(const Confirmation& confirmed) {
  return confirmed.paths[path_on].finite && confirmed.paths[path_off].finite;
}

// flip

Claim flip_claim(const FlipCase& /*flip_case*/, const FlipScore& score) {
  if (!score.flips()) return {};
  return {score.ratio()};
}

double flip_fitness(const FlipCase& /*flip_case*/, const FlipScore& score) {
  if (!score.is_finite() || score.bound() <= 0) return no_fitness;
  // Differences as seen by the token that wins exactly.
  const double side = sign_of(score.exact);
  const double margin = score.margin();
  const double on = side * score.paths[path_on].difference;
  const double off = side * score.paths[path_off].difference;
  const double worse = std::min(on, off);
  const double better = std::max(on, off);
  if (score.flips()) return (margin - 0.1 * worse) / score.bound();
  // Were the margin moved until the worse path is just wrong, it would be about that.
  const double potential = better > worse ? margin - worse : 0;
  const double distance = worse > 0 ? worse : -better;
  return (potential - distance) / score.bound();
}

Claim confirmed_flip(const FlipCase& /*flip_case*/, const FlipScore& score,
                     const Confirmation& confirmed) {
  if (!confirmed.flips()) return {};
  return {confirmed.margin() / score.bound()};
}

// divergence

double divergence_of(double apart, double bound) {
  return apart > 0 ? apart / bound : Claim{}.value;
}

Claim divergence_claim(const FlipCase& /*flip_case*/, const FlipScore& score) {
  if (!score.is_finite()) return {};
  return {divergence_of(score.apart(), score.bound())};
}

double divergence_fitness(const FlipCase& flip_case, const FlipScore& score) {
  if (!score.is_finite()) return no_fitness;
  const Claim claim = divergence_claim(flip_case, score);
  return claim.holds() ? claim.value : 0;
}

Claim confirmed_divergence(const FlipCase& /*flip_case*/, const FlipScore& score,
                           const Confirmation& confirmed) {
  if (!all_finite(confirmed)) return {};
  return {divergence_of(confirmed.apart(), score.bound())};
}

// kl

Claim kl_claim(const FlipCase& /*flip_case*/, const FlipScore& score) {
  const double kl = two_token_kl(score);
  if (!(kl > 2 * divergence_floor)) return {};
  return {kl};
}

double kl_fitness(const FlipCase& /*flip_case*/, const FlipScore& score) {
  const double kl = two_token_kl(score);
  // Where KL is below its floor, the distance of the differences leads on.
  return std::isnan(kl) ? no_fitness : kl + 0x1p-200 * score.apart();
}

Claim confirmed_kl(const FlipCase& flip_case, const FlipScore& score,
                   const Confirmation& confirmed) {
  if (!all_finite(confirmed)) return {};
  FlipScore again = score;
  for (const std::size_t path : {path_on, path_off}) {
    again.paths[path].difference = confirmed.paths[path].lowest;
  }
  return kl_claim(flip_case, again);
}

// bound

Claim bound_claim(const FlipCase& /*flip_case*/, const FlipScore& score) {
  if (!score.is_finite()) return {};
  return larger_of_paths([&](std::size_t path) {
    const double error =
        std::abs(score.paths[path].difference - score.exact) - score.reference_error;
    return error > 0 ? error / score.paths[path].bound : Claim{}.value;
  });
}

double bound_fitness(const FlipCase& flip_case, const FlipScore& score) {
  if (!score.is_finite()) return no_fitness;
  const Claim claim = bound_claim(flip_case, score);
  return claim.holds() ? claim.value : 0;
}

Claim confirmed_bound(const FlipCase& /*flip_case*/, const FlipScore& score,
                      const Confirmation& confirmed) {
  if (!all_finite(confirmed)) return {};
  return larger_of_paths([&](std::size_t path) {
    const double error = confirmed.paths[path].least_error;
    return error > 0 ? error / score.paths[path].bound : Claim{}.value;
  });
}

// tie

Claim tie_claim(const FlipCase& /*flip_case*/, const FlipScore& score) {
  if (!score.is_finite() || score.margin() <= score.reference_error) return {};
  return larger_of_paths([&](std::size_t path) {
    const PathScore& one = score.paths[path];
    return one.difference == 0 ? score.margin() / one.bound : Claim{}.value;
  });
}

double tie_fitness(const FlipCase& flip_case, const FlipScore& score) {
  if (!score.is_finite() || score.bound() <= 0) return no_fitness;
  const Claim claim = tie_claim(flip_case, score);
  // Above every case without a tie, whose error is at most the bound.
  if (claim.holds()) return 1 + claim.value;
  return larger_of_paths([&](std::size_t path) {
           const PathScore& one = score.paths[path];
           const double left = std::abs(one.difference);
           return (std::abs(one.difference - score.exact) - 2 * left) / one.bound - 1;
         })
      .value;
}

Claim confirmed_tie(const FlipCase& /*flip_case*/, const FlipScore& score,
                    const Confirmation& confirmed) {
  if (!is_apart(confirmed)) return {};
  return larger_of_paths([&](std::size_t path) {
    const ConfirmedPath& one = confirmed.paths[path];
    const bool ties = one.finite && one.lowest == 0 && one.highest == 0;
    return ties ? confirmed.margin() / score.paths[path].bound : Claim{}.value;
  });
}

// nan

/// How many times its largest magnitude could grow before a tensor leaves the measured range; of
/// the tensor that comes nearest.
double headroom(const FlipCase& flip_case) {
  double least = infinity;
  for (std::size_t t = 0; t < case_tensors; ++t) {
    float largest = 0;
    for (const float x : flip_case.tensors[t]) largest = std::max(largest, std::abs(x));
    if (largest == 0) continue;
    least = std::min(
        least, default_range(static_cast<CaseTensor>(t)).largest / static_cast<double>(largest));
  }
  return least;
}

Claim nan_claim(const FlipCase& flip_case, const FlipScore& score) {
  if (!std::isfinite(score.exact)) return {};
  return larger_of_paths([&](std::size_t path) {
    return std::isfinite(score.paths[path].difference) ? Claim{}.value : headroom(flip_case);
  });
}

double nan_fitness(const FlipCase& flip_case, const FlipScore& score) {
  const Claim claim = nan_claim(flip_case, score);
  if (claim.holds()) return claim.value;
  if (!std::isfinite(score.exact)) return no_fitness;
  return -1 / (1 + score.growth);
}

Claim confirmed_nan(const FlipCase& flip_case, const FlipScore& /*score*/,
                    const Confirmation& confirmed) {
  return larger_of_paths([&](std::size_t path) {
    return confirmed.paths[path].finite ? Claim{}.value : headroom(flip_case);
  });
}

constexpr std::array objectives{
    Objective{
        .target = Target::flip,
        .maximises = "distance of the two exact logits ÷ sum of both paths' bounds, of a flip",
        .unit = "of the bounds",
        .confirmed = "MPFR: the exact logits are apart; reference arithmetic: the tokens differ",
        .largest_value = 1,
        .claim = flip_claim,
        .fitness = flip_fitness,
        .confirmed_claim = confirmed_flip,
        .found = "A flip: {choice}, although the exact logits are {margin} apart (confirmed with "
                 "256 bits): {value} of what the bounds on rounding allow",
        .absent = "No flip: {choice}, and the exact logits are {margin} apart.",
        .none = "No flip in {runs} runs: both paths chose the same token in every case that was "
                "tried."},
    Objective{
        .target = Target::divergence,
        .maximises = "|difference of the logits on one path − on the other| ÷ sum of both bounds",
        .unit = "of the bounds",
        .confirmed = "reference arithmetic: both differences",
        .seeks_ties = false,
        .largest_value = 1,
        .claim = divergence_claim,
        .fitness = divergence_fitness,
        .confirmed_claim = confirmed_divergence,
        .found = "{on} and {off} differ by {apart} (logits) in the difference of the two logits: "
                 "{value} of what the bounds on rounding allow",
        .absent = "No divergence: both paths compute the same difference of the logits.",
        .none = "No divergence in {runs} runs: both paths computed the same difference of the "
                "logits in every case that was tried."},
    Objective{
        .target = Target::kl,
        .maximises = "KL of the paths' distributions over the two tokens, on ‖ off, in binary64",
        .unit = "nats",
        .confirmed = "reference arithmetic: both differences; KL above twice its floor of 2^-120",
        .largest_value = infinity,
        .claim = kl_claim,
        .fitness = kl_fitness,
        .confirmed_claim = confirmed_kl,
        .found = "{on} and {off} give the two tokens probabilities that are {value} nats apart "
                 "(KL): they differ by {apart} in the difference of the two logits",
        .absent = "No KL above its floor of 2^-120: the distributions over the two tokens are "
                  "equal as far as can be told.",
        .none = "No KL above its floor of 2^-120 in {runs} runs."},
    Objective{.target = Target::bound,
              .maximises = "error of a path ÷ its own bound; more than 1 is a defect of kvsim",
              .unit = "of the path's bound",
              .confirmed = "MPFR: the error, from below",
              .seeks_ties = false,
              .largest_value = 1,
              .claim = bound_claim,
              .fitness = bound_fitness,
              .confirmed_claim = confirmed_bound,
              .found = "The error of {path} is {value} of its bound (confirmed with 256 bits)",
              .absent = "No error: both paths compute the exact difference.",
              .none = "No error in {runs} runs: both paths computed the exact difference in every "
                      "case that was tried."},
    Objective{
        .target = Target::tie,
        .maximises = "distance of the two exact logits ÷ bound of a path on which they are equal",
        .unit = "of the path's bound",
        .confirmed = "MPFR: the exact logits are apart; reference arithmetic: the computed ones "
                     "are equal",
        .largest_value = 1,
        .claim = tie_claim,
        .fitness = tie_fitness,
        .confirmed_claim = confirmed_tie,
        .found = "A tie: {path} computes equal logits, although the exact ones are {margin} apart "
                 "(confirmed with 256 bits): {value} of its bound",
        .absent = "No tie: no path computes equal logits where the exact ones are apart.",
        .none = "No tie in {runs} runs: no path computed equal logits where the exact ones are "
                "apart."},
    Objective{
        .target = Target::nan,
        .maximises = "how many times larger the numbers could be within the range, where a path "
                     "overflows all the same",
        .unit = "× the largest magnitude",
        .confirmed = "MPFR: the exact logits are finite; reference arithmetic: a logit is not",
        .seeks_ties = false,
        .largest_value = infinity,
        .claim = nan_claim,
        .fitness = nan_fitness,
        .confirmed_claim = confirmed_nan,
        .found = "Not a finite number: {path} overflows, although the exact logits are finite, "
                 "{margin} apart, and numbers {value} times as large are within the default range",
        .absent = "Finite: no path overflows.",
        .none = "No overflow in {runs} runs: both paths computed finite logits in every case that "
                "was tried."},
};

}  // namespace

const Objective& objective(Target target) { return objectives[static_cast<std::size_t>(target)]; }

double two_token_kl(const FlipScore& score) {
  // Softmax depends on differences alone.
  const std::array on{score.paths[path_on].difference, 0.0};
  const std::array off{score.paths[path_off].difference, 0.0};
  if (!std::isfinite(on[0]) || !std::isfinite(off[0])) return Claim{}.value;
  const auto result = divergence(on, off);
  return result ? result->kl : Claim{}.value;
}

}  // namespace kvsim::fuzz
