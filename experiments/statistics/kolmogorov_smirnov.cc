// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/kolmogorov_smirnov.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/constants/constants.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

constexpr double largest_exact = 1000;           // numbers of one sample
constexpr double largest_exact_pairs = 4e6;      // product of two sizes
constexpr double tail_from = 4;                  // n d²
constexpr double smallest_limit_argument = 0.1;  // below, the limit's tail is 1 to 53 bits

/// A square matrix times 2^exponent.
struct Scaled {
  std::size_t size = 0;
  std::vector<double> cells;
  int exponent = 0;

  [[nodiscard]] double& at(std::size_t row, std::size_t column) {
    return cells[row * size + column];
  }
};

Scaled product(const Scaled& a, const Scaled& b) {
  Scaled result{a.size, std::vector<double>(a.cells.size()), a.exponent + b.exponent};
  double largest = 0;
  for (std::size_t row = 0; row < a.size; ++row) {
    for (std::size_t inner = 0; inner < a.size; ++inner) {
      const double factor = a.cells[row * a.size + inner];
      if (factor == 0) continue;
      for (std::size_t column = 0; column < a.size; ++column) {
        result.at(row, column) += factor * b.cells[inner * a.size + column];
      }
    }
  }
  for (const double cell : result.cells) largest = std::max(largest, cell);
  int shift = 0;
  std::frexp(largest, &shift);
  for (double& cell : result.cells) cell = std::ldexp(cell, -shift);
  result.exponent += shift;
  return result;
}

double integer_power(double base, std::size_t exponent) {
  double result = 1;
  for (std::size_t i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// Marsaglia, Tsang, Wang: with n d = k − h, P(D < d) = n! ÷ n^n times cell (k, k) of Hⁿ, H of
/// 2k − 1 rows.
double exact_below(std::size_t n, double d) {
  const double place = static_cast<double>(n) * d;
  const auto k = static_cast<std::size_t>(place) + 1;
  const double h = static_cast<double>(k) - place;
  Scaled power{2 * k - 1, {}, 0};
  const std::size_t last = power.size - 1;
  power.cells.resize(power.size * power.size);
  for (std::size_t row = 0; row <= last; ++row) {
    for (std::size_t column = 0; column <= std::min(row + 1, last); ++column) {
      power.at(row, column) = 1;
    }
  }
  for (std::size_t i = 0; i <= last; ++i) {
    power.at(i, 0) -= integer_power(h, i + 1);
    power.at(last, i) -= integer_power(h, power.size - i);
  }
  if (2 * h > 1) power.at(last, 0) += integer_power(2 * h - 1, power.size);
  for (std::size_t row = 0; row <= last; ++row) {
    double factorial = 1;
    for (std::size_t step = 2; step <= row + 1; ++step) {
      factorial *= static_cast<double>(step);
      power.at(row, row + 1 - step) /= factorial;
    }
  }
  Scaled result{power.size, std::vector<double>(power.cells.size()), 0};
  for (std::size_t i = 0; i <= last; ++i) result.at(i, i) = 1;
  for (std::size_t rest = n; rest > 0; rest /= 2) {
    if (rest % 2 == 1) result = product(result, power);
    if (rest > 1) power = product(power, power);
  }
  double value = result.at(k - 1, k - 1);
  int exponent = result.exponent;
  for (std::size_t i = 1; i <= n; ++i) {
    value *= static_cast<double>(i) / static_cast<double>(n);
    int shift = 0;
    value = std::frexp(value, &shift);
    exponent += shift;
  }
  return std::ldexp(value, exponent);
}

/// Pelz, Good: P(√n D < t) = K₀ + K₁ ÷ √n + K₂ ÷ n + K₃ ÷ n^1.5, for t ≤ 2. Every K is a sum over
/// all integers k of terms with a = π²(k + ½)² and some with b = π²k².
double expansion_below(double n, double t) {
  if (t < smallest_limit_argument) return 0;
  constexpr double pi = boost::math::constants::pi<double>();
  const double t2 = t * t;
  const double t4 = t2 * t2;
  const double t6 = t4 * t2;
  std::array<double, 4> half = {};
  std::array<double, 4> whole = {};
  for (int k = 0; k < 8; ++k) {  // and −1 − k for the halves, −k for the whole numbers
    const double a = pi * pi * (k + 0.5) * (k + 0.5);
    const double weight = 2 * exponential(std::max(-2000.0, -a / (2 * t2)));
    half[0] += weight;
    half[1] += weight * (a - t2);
    half[2] += weight * (6 * t6 + 2 * t4 + a * (2 * t4 - 5 * t2) + a * a * (1 - 2 * t2));
    half[3] += weight * (a * a * a * (5 - 30 * t2) + a * a * (212 * t4 - 60 * t2) +
                         a * (135 * t4 - 96 * t6) - 30 * t6 - 90 * t6 * t2);
    const double b = pi * pi * k * k;
    const double whole_weight = 2 * exponential(std::max(-2000.0, -b / (2 * t2)));
    whole[2] += whole_weight * b;
    whole[3] += whole_weight * (3 * b * t2 - b * b);
  }
  const double root = std::sqrt(n);
  const double sum = half[0] / t + half[1] / (6 * t4 * root) +
                     (half[2] / (72 * t6 * t) - whole[2] / (36 * t2 * t)) / n +
                     (half[3] / (6480 * t6 * t4) + whole[3] / (216 * t6)) / (n * root);
  return boost::math::constants::root_half_pi<double>() * sum;
}

/// P(D⁺ ≥ d), Birnbaum and Tingey; 0 < d < 1.
double one_sided_tail(double n, double d) {
  double sum = 0;
  const double last = std::floor(n * (1 - d));
  for (double j = 0; j <= last; ++j) {
    const double rest = 1 - d - j / n;
    if (!(rest > 0)) break;
    sum += exponential(log_binomial(n, j) + (n - j) * logarithm(rest) +
                       (j - 1) * logarithm(d + j / n));
  }
  return d * sum;
}

KolmogorovSmirnov assessed(double d, double p, bool exact) {
  return {nine_digits(d), nine_digits(std::clamp(p, 0.0, 1.0)), exact};
}

/// The pooled samples of sizes first and second, and after which numbers another value begins.
struct Pooled {
  std::size_t first = 0;
  std::size_t second = 0;
  std::vector<bool> ends;              // [numbers drawn]
  std::uint64_t largest_distance = 0;  // of the distribution functions, times both sizes
};

Pooled pool(std::span<const double> first, std::span<const double> second) {
  std::vector<double> a(first.begin(), first.end());
  std::vector<double> b(second.begin(), second.end());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  Pooled result{a.size(), b.size(), std::vector<bool>(a.size() + b.size() + 1), 0};
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const double value = j == b.size() || (i < a.size() && a[i] < b[j]) ? a[i] : b[j];
    while (i < a.size() && a[i] == value) ++i;
    while (j < b.size() && b[j] == value) ++j;
    result.ends[i + j] = true;
    const std::uint64_t left = std::uint64_t{i} * b.size();
    const std::uint64_t right = std::uint64_t{j} * a.size();
    result.largest_distance =
        std::max(result.largest_distance, left > right ? left - right : right - left);
  }
  return result;
}

/// The share of all orders in which the functions come as far apart at the end of some value.
/// far[j] is that share among the orders of i numbers of the first and j of the second sample; the
/// last of them is of the first with probability i ÷ (i + j).
double share_as_far(const Pooled& pooled) {
  std::vector<double> far(pooled.second + 1);
  for (std::size_t i = 0; i <= pooled.first; ++i) {
    for (std::size_t j = 0; j <= pooled.second; ++j) {
      const std::uint64_t left = std::uint64_t{i} * pooled.second;
      const std::uint64_t right = std::uint64_t{j} * pooled.first;
      const std::uint64_t distance = left > right ? left - right : right - left;
      if (pooled.ends[i + j] && distance >= pooled.largest_distance) {
        far[j] = 1;
        continue;
      }
      double share = 0;
      if (i > 0) share += static_cast<double>(i) / static_cast<double>(i + j) * far[j];
      if (j > 0) share += static_cast<double>(j) / static_cast<double>(i + j) * far[j - 1];
      far[j] = share;
    }
  }
  return far.back();
}

}  // namespace

double kolmogorov_limit_tail(double t) {
  if (t < smallest_limit_argument) return 1;
  constexpr double pi = boost::math::constants::pi<double>();
  if (t < 1) {
    // The same function, by Poisson's summation formula: 1 − √(2π)/t Σ e^(−(2k−1)²π²/(8t²)).
    double sum = 0;
    for (int k = 1; k <= 4; ++k) {
      const double odd = 2 * k - 1;
      sum += exponential(std::max(-2000.0, -odd * odd * pi * pi / (8 * t * t)));
    }
    return 1 - boost::math::constants::root_two_pi<double>() / t * sum;
  }
  double sum = 0;
  for (int k = 1; k <= 5; ++k) {
    const double term = exponential(std::max(-2000.0, -2.0 * k * k * t * t));
    sum += k % 2 == 1 ? term : -term;
  }
  return 2 * sum;
}

double kolmogorov_tail(double n, double d) {
  if (d <= 0) return 1;
  if (d >= 1) return 0;
  if (n * d * d >= tail_from) return std::min(1.0, 2 * one_sided_tail(n, d));
  if (n <= largest_exact) return 1 - exact_below(static_cast<std::size_t>(n), d);
  return 1 - expansion_below(n, std::sqrt(n) * d);
}

Result<KolmogorovSmirnov> kolmogorov_smirnov(std::span<const double> sample,
                                             const std::function<double(double)>& law) {
  if (auto error = check_finite("sample", sample)) return *error;
  if (sample.empty()) return Error{ErrorKind::cannot_tell, "an empty sample against a law"};
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double d = 0;
  double before = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double below = law(sorted[i]);
    if (!(below >= before && below <= 1)) {
      return Error{ErrorKind::usage, fmt::format("the law's distribution function is {} at {}, "
                                                 "after {}; accepted: rising, from 0 to 1",
                                                 below, sorted[i], before)};
    }
    before = below;
    d = std::max({d, static_cast<double>(i + 1) / n - below, below - static_cast<double>(i) / n});
  }
  return assessed(d, kolmogorov_tail(n, d), n <= largest_exact || n * d * d >= tail_from);
}

Result<KolmogorovSmirnov> kolmogorov_smirnov(std::span<const double> first,
                                             std::span<const double> second) {
  if (auto error = check_finite("first sample", first)) return *error;
  if (auto error = check_finite("second sample", second)) return *error;
  if (first.empty() || second.empty()) {
    return Error{ErrorKind::cannot_tell, fmt::format("samples of {} and {} numbers; needed: 1 or "
                                                     "more in each",
                                                     first.size(), second.size())};
  }
  const Pooled pooled = pool(first, second);
  const double pairs = static_cast<double>(first.size()) * static_cast<double>(second.size());
  const double d = static_cast<double>(pooled.largest_distance) / pairs;
  if (pairs <= largest_exact_pairs) return assessed(d, share_as_far(pooled), true);
  const double both = static_cast<double>(first.size()) + static_cast<double>(second.size());
  return assessed(d, kolmogorov_limit_tail(d * std::sqrt(pairs / both)), false);
}

}  // namespace kvsim::statistics
