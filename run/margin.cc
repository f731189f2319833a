// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/margin.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "sim/double_double.h"
#include "sim/ulp.h"

namespace kvsim {

std::vector<TokenLogit> largest_logits(std::span<const double> logits, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(logits.size());
  const std::int64_t kept = std::clamp<std::int64_t>(count, 0, size);
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // A strict order of distinct tokens, so that the result does not depend on the way of sorting.
  const auto is_before = [&](std::int64_t a, std::int64_t b) {
    const double x = logits[static_cast<std::size_t>(a)];
    const double y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  if (kept < size / 8) {
    std::partial_sort(order.begin(), order.begin() + kept, order.end(), is_before);
  } else {
    std::sort(order.begin(), order.end(), is_before);
  }
  std::vector<TokenLogit> result;
  for (const std::int64_t token : std::span(order).first(static_cast<std::size_t>(kept))) {
    result.push_back({token, logits[static_cast<std::size_t>(token)]});
  }
  return result;
}

Margin margin(const softfloat::Format& storage, double first, double second) {
  const double difference = first - second;
  return {difference, std::ldexp(difference, -ulp_exponent(storage, DoubleDouble(first)))};
}

std::optional<double> top_two_error(std::span<const double> p, std::span<const double> q) {
  if (p.size() != q.size()) return std::nullopt;
  const std::vector<TokenLogit> top = largest_logits(p, 2);
  if (top.size() < 2) return std::nullopt;
  const double q_first = q[static_cast<std::size_t>(top[0].token)];
  const double q_second = q[static_cast<std::size_t>(top[1].token)];
  for (const double logit : {top[0].logit, top[1].logit, q_first, q_second}) {
    if (!std::isfinite(logit)) return std::nullopt;
  }
  return (two_sum(q_first, -q_second) - two_sum(top[0].logit, -top[1].logit)).high;
}

}  // namespace kvsim
