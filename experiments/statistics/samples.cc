// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "sim/double_double.h"

namespace kvsim::statistics {
namespace {

DoubleDouble exact_mean(std::span<const double> values) {
  DoubleDouble sum;
  for (const double value : values) sum = sum + value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::optional<Error> check_finite(std::string_view name, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    return Error{ErrorKind::usage, fmt::format("{}: number {} is {}; accepted: finite numbers",
                                               name, i + 1, values[i])};
  }
  return std::nullopt;
}

Moments moments(std::span<const double> values) {
  Moments result;
  if (values.empty()) return result;
  const DoubleDouble mean = exact_mean(values);
  DoubleDouble squares;
  for (const double value : values) {
    const double deviation = (DoubleDouble(value) - mean).high;
    squares = squares + two_product(deviation, deviation);
  }
  result.n = static_cast<double>(values.size());
  result.mean = mean.high;
  result.squares = squares.high;
  return result;
}

CoMoments co_moments(std::span<const double> x, std::span<const double> y) {
  CoMoments result;
  if (x.empty()) return result;
  const DoubleDouble x_mean = exact_mean(x);
  const DoubleDouble y_mean = exact_mean(y);
  DoubleDouble xx;
  DoubleDouble yy;
  DoubleDouble xy;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const DoubleDouble a = DoubleDouble(x[i]) - x_mean;
    const DoubleDouble b = DoubleDouble(y[i]) - y_mean;
    xx = xx + a * a;
    yy = yy + b * b;
    xy = xy + a * b;
  }
  result.xx = xx.high;
  result.yy = yy.high;
  result.xy = xy.high;
  if (!(result.xx > 0 && result.yy > 0)) return result;
  const DoubleDouble r = xy / (sqrt(xx) * sqrt(yy));
  result.correlation = std::clamp(r.high, -1.0, 1.0);
  result.unexplained = ((DoubleDouble(1) - r) * (DoubleDouble(1) + r)).high;
  if (result.unexplained < 0x1p-90) result.unexplained = 0;
  return result;
}

Ranks mid_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  Ranks result;
  result.ranks.resize(values.size());
  result.ties.reserve(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) result.ranks[order[i]] = rank;
    result.ties.push_back(static_cast<std::int64_t>(end - begin));
    begin = end;
  }
  return result;
}

double sorted_quantile(std::span<const double> ascending, double probability) {
  const double place = probability * static_cast<double>(ascending.size() - 1);
  const double below = std::floor(place);
  const auto index = static_cast<std::size_t>(below);
  if (index + 1 >= ascending.size()) return ascending.back();
  return ascending[index] + (place - below) * (ascending[index + 1] - ascending[index]);
}

}  // namespace kvsim::statistics
