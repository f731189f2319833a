// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "sim/exp.h"
#include "sim/log.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The weights e^(logit − largest) of a vocabulary and what normalizes them.
struct Softmax {
  SoftmaxNormalizer normalizer;
  std::vector<double> weights;
  double sum = 0;  ///< of the weights, rounded once
};

DoubleDouble weight(double logit, double largest) {
  // Far below the range of double, and not through two_sum(), which makes a NaN of infinity.
  if (logit - largest < -800) return {};
  return exp_reference(two_sum(logit, -largest));
}

Result<Softmax> softmax(std::span<const double> logits, std::string_view name) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::usage,
                 fmt::format("{}: {}; accepted: one number or more below +infinity, not all of "
                             "them -infinity",
                             name, problem)};
  };
  if (logits.empty()) return fail("no logits");
  Softmax result;
  result.normalizer.largest = -infinity;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double logit = logits[token];
    if (std::isnan(logit) || logit == infinity) {
      return fail(fmt::format("the logit of token {} is {}", token, logit));
    }
    result.normalizer.largest = std::max(result.normalizer.largest, logit);
  }
  if (result.normalizer.largest == -infinity) return fail("every logit is -infinity");
  DoubleDouble sum;
  result.weights.reserve(logits.size());
  for (const double logit : logits) {
    const DoubleDouble value = weight(logit, result.normalizer.largest);
    result.weights.push_back(value.high);
    sum = sum + value;
  }
  result.sum = sum.high;
  result.normalizer.log_sum = log_reference(sum);
  return result;
}

DoubleDouble exact_log_probability(const SoftmaxNormalizer& normalizer, double logit) {
  return two_sum(logit, -normalizer.largest) - normalizer.log_sum;
}

/// e^h − 1 − h = h²/2! + h³/3! + … for |h| ≤ 1; the first term left out is below 2^−65.
double exp_rest(double h) {
  double sum = 1;
  for (int n = 20; n >= 3; --n) sum = 1 + h / n * sum;
  return h * h / 2 * sum;
}

/// ½ ((1 + u) log(1 + u) + (1 − u) log(1 − u)) = Σ u^(2k) ÷ (2k (2k − 1)) for |u| ≤ tanh ½; the
/// first term left out is below 2^−60 of the first.
double entropy_rest(double u) {
  const double square = u * u;
  double sum = 0;
  for (int k = 25; k >= 1; --k) sum = square * (sum + 1.0 / (2 * k * (2 * k - 1)));
  return sum;
}

/// One token's share of the two sums.
struct Terms {
  double kl;
  double js;
};

/// The smaller probability is the larger times e^−distance; distance > 1.
double js_far(double larger, double smaller, double distance) {
  const double log_ratio = log_reference(2 * larger / (larger + smaller)).high;
  double sum = larger * log_ratio;
  if (smaller > 0) sum += smaller * (log_ratio - distance);
  return sum / 2;
}

Terms terms(double p, double q, double h) {
  if (std::fabs(h) <= 1) {
    const double rest = exp_rest(h);
    const double less_one = h + rest;  // e^h − 1
    return {p * rest, (p + q) / 2 * entropy_rest(less_one / (less_one + 2))};
  }
  // p may be below the range of double; then p·h is nothing beside q.
  const double balance = mutant_is_on(Mutant::divergence_not_balanced) ? 0 : q - p;
  const double kl = p > 0 ? balance - p * h : q;
  if (p == 0 && q == 0) return {0, 0};
  return {kl, js_far(std::max(p, q), std::min(p, q), std::fabs(h))};
}

}  // namespace

Result<SoftmaxNormalizer> softmax_normalizer(std::span<const double> logits) {
  Result<Softmax> result = softmax(logits, "logits");
  if (!result) return result.error();
  return result->normalizer;
}

double log_probability(const SoftmaxNormalizer& normalizer, double logit) {
  if (logit == -infinity) return -infinity;
  if (mutant_is_on(Mutant::largest_taken_off_twice)) logit -= normalizer.largest;
  return exact_log_probability(normalizer, logit).high;
}

Result<Divergence> divergence(std::span<const double> p_logits, std::span<const double> q_logits) {
  if (p_logits.size() != q_logits.size()) {
    return Error{ErrorKind::usage, fmt::format("p has {} logits and q has {}; accepted: two lists "
                                               "over one vocabulary",
                                               p_logits.size(), q_logits.size())};
  }
  const Result<Softmax> p = softmax(p_logits, "p");
  if (!p) return p.error();
  const Result<Softmax> q = softmax(q_logits, "q");
  if (!q) return q.error();
  DoubleDouble kl;
  DoubleDouble js;
  bool kl_is_infinite = false;
  for (std::size_t token = 0; token < p_logits.size(); ++token) {
    const double a = p_logits[token];
    const double b = q_logits[token];
    const double p_token = p->weights[token] / p->sum;
    const double q_token = q->weights[token] / q->sum;
    if (a == -infinity || b == -infinity) {
      if (a != -infinity) kl_is_infinite = true;
      const double larger = std::max(p_token, q_token);
      if (larger > 0) js = js + js_far(larger, 0, infinity);
      if (b != -infinity) kl = kl + q_token;  // the term q − p − p·h
      continue;
    }
    const DoubleDouble h =
        exact_log_probability(q->normalizer, b) - exact_log_probability(p->normalizer, a);
    const Terms share = terms(p_token, q_token, h.high);
    kl = kl + share.kl;
    js = js + share.js;
  }
  return Divergence{kl_is_infinite ? infinity : kl.high, js.high};
}

LogitDifference logit_difference(std::span<const double> p, std::span<const double> q) {
  LogitDifference result;
  for (std::size_t token = 0; token < p.size(); ++token) {
    if (p[token] == q[token]) continue;
    ++result.differing;
    const double difference = std::fabs(p[token] - q[token]);
    if (std::isfinite(difference)) result.largest = std::max(result.largest, difference);
  }
  return result;
}

}  // namespace kvsim
