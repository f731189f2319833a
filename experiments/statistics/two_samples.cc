// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/two_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

constexpr std::size_t exact_below = 50;   // numbers in either sample
constexpr std::size_t exact_limit = 200;  // numbers in both

std::optional<Error> check_samples(std::span<const double> first, std::span<const double> second,
                                   std::size_t fewest) {
  if (auto error = check_finite("first sample", first)) return error;
  if (auto error = check_finite("second sample", second)) return error;
  if (first.size() >= fewest && second.size() >= fewest) return std::nullopt;
  return Error{ErrorKind::cannot_tell,
               fmt::format("samples of {} and {} numbers; needed: {} or more in each", first.size(),
                           second.size(), fewest)};
}

/// The share of the subsets of `size` ranks whose sum is as far from its expectation as `sum`, or
/// farther. Ranks are doubled, which makes integers of them.
double share_as_far(std::span<const double> ranks, std::size_t size, double sum) {
  std::vector<std::size_t> doubled;
  doubled.reserve(ranks.size());
  for (const double rank : ranks) doubled.push_back(static_cast<std::size_t>(2 * rank));
  std::vector<std::size_t> descending = doubled;
  std::sort(descending.rbegin(), descending.rend());
  std::size_t largest = 0;
  for (std::size_t i = 0; i < size; ++i) largest += descending[i];
  // ways[taken][total]: subsets of the ranks so far. Sums of positive numbers: nothing cancels.
  std::vector<std::vector<double>> ways(size + 1, std::vector<double>(largest + 1));
  ways[0][0] = 1;
  for (const std::size_t rank : doubled) {
    for (std::size_t taken = size; taken > 0; --taken) {
      for (std::size_t total = largest; total >= rank; --total) {
        ways[taken][total] += ways[taken - 1][total - rank];
      }
    }
  }
  const double expected = static_cast<double>(size) * static_cast<double>(ranks.size() + 1);
  const double distance = std::fabs(2 * sum - expected);
  double as_far = 0;
  double all = 0;
  for (std::size_t total = 0; total <= largest; ++total) {
    const double count = ways[size][total];
    all += count;
    if (std::fabs(static_cast<double>(total) - expected) >= distance) as_far += count;
  }
  return as_far / all;
}

}  // namespace

Result<MannWhitney> mann_whitney(std::span<const double> first, std::span<const double> second,
                                 MannWhitneyMethod method) {
  if (auto error = check_samples(first, second, 1)) return *error;
  std::vector<double> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  if (method == MannWhitneyMethod::exact && all.size() >= exact_limit) {
    return Error{ErrorKind::usage, fmt::format("an exact Mann-Whitney test of {} numbers; "
                                               "accepted: fewer than {}",
                                               all.size(), exact_limit)};
  }
  const Ranks ranks = mid_ranks(all);
  if (ranks.ties.size() == 1) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a Mann-Whitney test of {} equal numbers", all.size())};
  }
  const auto n1 = static_cast<double>(first.size());
  const auto n2 = static_cast<double>(second.size());
  const double n = n1 + n2;
  double rank_sum = 0;  // multiples of ½: exact
  for (std::size_t i = 0; i < first.size(); ++i) rank_sum += ranks.ranks[i];
  double tied = 0;
  for (const std::int64_t size : ranks.ties) {
    const auto t = static_cast<double>(size);
    tied += t * (t * t - 1);
  }
  MannWhitney result;
  const double u = rank_sum - n1 * (n1 + 1) / 2;
  const double distance = u - n1 * n2 / 2;
  const double deviation = std::sqrt(n1 * n2 / 12 * (n + 1 - tied / (n * (n - 1))));
  result.u = u;
  result.z = nine_digits(distance / deviation);
  result.rank_biserial = nine_digits(2 * u / (n1 * n2) - 1);
  const bool small = std::max(first.size(), second.size()) < exact_below;
  result.exact =
      method == MannWhitneyMethod::exact || (method == MannWhitneyMethod::automatic && small);
  if (result.exact) {
    // The smaller sample has fewer subsets; both are equally far from their expectations.
    const bool first_is_smaller = first.size() <= second.size();
    const double smaller_sum = first_is_smaller ? rank_sum : n * (n + 1) / 2 - rank_sum;
    result.p =
        nine_digits(share_as_far(ranks.ranks, std::min(first.size(), second.size()), smaller_sum));
  } else {
    const double corrected = std::max(0.0, std::fabs(distance) - 0.5);
    result.p = nine_digits(normal_two_sided(corrected / deviation));
  }
  return result;
}

Result<WelchT> welch_t(std::span<const double> first, std::span<const double> second,
                       double confidence) {
  if (auto error = check_samples(first, second, 2)) return *error;
  if (auto error = check_confidence(confidence)) return *error;
  const Moments a = moments(first);
  const Moments b = moments(second);
  const double a_share = a.variance() / a.n;
  const double b_share = b.variance() / b.n;
  const double variance = a_share + b_share;
  if (variance == 0) {
    return Error{ErrorKind::cannot_tell, "a t test of two constant samples"};
  }
  const double error = std::sqrt(variance);
  // As shares of their sum, so that the squares of tiny variances do not underflow.
  const double a_part = a_share / variance;
  const double b_part = b_share / variance;
  WelchT result;
  result.degrees = 1 / (a_part * a_part / (a.n - 1) + b_part * b_part / (b.n - 1));
  const double difference = a.mean - b.mean;
  const double t = difference / error;
  result.p = nine_digits(student_two_sided(t, result.degrees));
  const double half = error * student_half_width(confidence, result.degrees);
  result.difference = {nine_digits(difference), nine_digits(difference - half),
                       nine_digits(difference + half)};
  result.t = nine_digits(t);
  result.degrees = nine_digits(result.degrees);
  result.cohens_d = nine_digits(difference / std::sqrt((a.squares + b.squares) / (a.n + b.n - 2)));
  return result;
}

Result<double> cohens_d(std::span<const double> first, std::span<const double> second) {
  const Result<WelchT> test = welch_t(first, second);
  if (!test) return test.error();
  return test->cohens_d;
}

}  // namespace kvsim::statistics
