// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/multiple_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

std::optional<Error> check_p_values(std::span<const double> p_values) {
  for (const double p : p_values) {
    if (p >= 0 && p <= 1) continue;
    return Error{ErrorKind::usage, fmt::format("p-value {}; accepted: a number from 0 to 1", p)};
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<double>> bonferroni(std::span<const double> p_values) {
  if (auto error = check_p_values(p_values)) return *error;
  const auto tests = static_cast<double>(p_values.size());
  std::vector<double> adjusted;
  adjusted.reserve(p_values.size());
  for (const double p : p_values) adjusted.push_back(nine_digits(std::min(1.0, tests * p)));
  return adjusted;
}

Result<std::vector<double>> benjamini_hochberg(std::span<const double> p_values) {
  if (auto error = check_p_values(p_values)) return *error;
  const std::size_t tests = p_values.size();
  std::vector<std::size_t> order(tests);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(tests);
  double smallest = 1;
  for (std::size_t rank = tests; rank > 0; --rank) {
    const std::size_t test = order[rank - 1];
    smallest =
        std::min(smallest, static_cast<double>(tests) / static_cast<double>(rank) * p_values[test]);
    adjusted[test] = nine_digits(smallest);
  }
  return adjusted;
}

}  // namespace kvsim::statistics
