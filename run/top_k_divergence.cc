// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/top_k_divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/double_double.h"
#include "sim/exp.h"
#include "sim/log.h"

namespace kvsim {
namespace {

using List = std::vector<TokenLogProbability>;

double probability(double log_probability) {
  return log_probability < -700 ? 0 : exp_reference(DoubleDouble(log_probability)).high;
}

/// The list by token, or what is wrong with it.
Result<List> checked(std::span<const TokenLogProbability> list, std::string_view name,
                     double error) {
  const auto fail = [&](const std::string& problem) {
    return Error{ErrorKind::usage, fmt::format("{}: {}", name, problem)};
  };
  List sorted(list.begin(), list.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.token < b.token; });
  DoubleDouble sum;
  for (std::size_t index = 0; index < sorted.size(); ++index) {
    const auto& [token, value] = sorted[index];
    if (!(value <= error)) {
      return fail(
          fmt::format("the log-probability of token {} is {}; accepted: at most 0", token, value));
    }
    if (index > 0 && sorted[index - 1].token == token) {
      return fail(fmt::format("token {} stands twice; accepted: each token once", token));
    }
    sum = sum + probability(value);
  }
  // Each probability is off by a factor of e^±error at most.
  if (sum.high > 1 + 2 * error + 0x1p-40) {
    return fail(fmt::format("the probabilities sum to {}; accepted: at most 1", sum.high));
  }
  return sorted;
}

/// The smallest P log(P ÷ Q) for P and Q within `slack` of what is given: as large a Q as possible,
/// and P as near to Q ÷ e as possible, where the function of P has its only minimum.
double smallest_rest(double p, double q, double slack) {
  const double largest_q = std::min(q + slack, 1.0);
  if (largest_q <= 0) return 0;
  constexpr double inverse_e = 0x1.78b56362cef38p-2;
  const double lowest = std::max(p - slack, 0.0);
  const double highest = std::min(std::max(p + slack, 0.0), 1.0);
  const double chosen = std::clamp(largest_q * inverse_e, lowest, highest);
  if (chosen < 0x1p-900 || largest_q < 0x1p-900) return 0;
  return chosen * (log_reference(chosen) - log_reference(largest_q)).high;
}

}  // namespace

Result<KlLowerBound> kl_lower_bound(std::span<const TokenLogProbability> p,
                                    std::span<const TokenLogProbability> q, double error) {
  if (!(error >= 0 && error <= 0.1)) {
    return Error{ErrorKind::usage,
                 fmt::format("log-probability error {}; accepted: from 0 to 0.1", error)};
  }
  const Result<List> p_list = checked(p, "p", error);
  if (!p_list) return p_list.error();
  const Result<List> q_list = checked(q, "q", error);
  if (!q_list) return q_list.error();
  KlLowerBound bound;
  DoubleDouble common;  // Σ_C p log(p ÷ q)
  DoubleDouble p_rest(1.0);
  DoubleDouble q_rest(1.0);
  double common_error = 0;
  auto other = q_list->begin();
  for (const auto& [token, log_p] : *p_list) {
    while (other != q_list->end() && other->token < token) ++other;
    if (other == q_list->end() || other->token != token) continue;
    ++bound.common_tokens;
    const double p_token = probability(log_p);
    p_rest = p_rest - DoubleDouble(p_token);
    q_rest = q_rest - DoubleDouble(probability(other->log_probability));
    if (p_token == 0) continue;
    if (other->log_probability == -std::numeric_limits<double>::infinity()) {
      bound.nats = std::numeric_limits<double>::infinity();
      continue;
    }
    const double log_ratio = log_p - other->log_probability;
    common = common + two_product(p_token, log_ratio);
    // p' log(p' ÷ q') with p' = p e^x, q' = q e^y, |x|, |y| ≤ error ≤ 0.1.
    common_error += p_token * (std::fabs(log_ratio) * 1.1 * error + 2.3 * error) +
                    0x1p-50 * p_token * std::fabs(log_ratio);
  }
  if (bound.common_tokens == 0 || bound.nats > 0) return bound;
  const double slack = 1.1 * error + 0x1p-50;
  const double sum = common.high + smallest_rest(p_rest.high, q_rest.high, slack);
  bound.nats = std::max(0.0, sum - common_error * (1 + 0x1p-40) - 0x1p-50);
  return bound;
}

}  // namespace kvsim
