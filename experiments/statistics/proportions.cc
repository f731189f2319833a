// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/proportions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/constants/constants.hpp>
#include <cmath>
#include <limits>

#include "experiments/statistics/distributions.h"
#include "sim/double_double.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::optional<Error> check_count(const Count& count) {
  if (count.successes >= 0 && count.successes <= count.trials) return std::nullopt;
  return Error{ErrorKind::usage, fmt::format("{} successes of {} trials; accepted: 0 or more, not "
                                             "more than the trials",
                                             count.successes, count.trials)};
}

/// Wilson's interval for x successes of n trials, which need be no integers.
Estimate wilson(double x, double n, double confidence) {
  const double z = normal_half_width(confidence);
  const double square = z * z;
  const double middle = (x + square / 2) / (n + square);
  const double half = z / (n + square) * std::sqrt(x * ((n - x) / n) + square / 4);
  Estimate result{nine_digits(x / n), 0, 1};
  if (x > 0) result.low = nine_digits(middle - half);
  if (x < n) result.high = nine_digits(middle + half);
  return result;
}

/// How many independent trials say as much about the share as those of the clusters.
double effective_trials(std::span<const Count> clusters, const Count& all, double confidence) {
  const auto trials = static_cast<double>(all.trials);
  const double share = static_cast<double>(all.successes) / trials;
  double count = 0;
  DoubleDouble squares;
  for (const Count& cluster : clusters) {
    if (cluster.trials == 0) continue;
    count += 1;
    const double deviation =
        static_cast<double>(cluster.successes) - share * static_cast<double>(cluster.trials);
    squares = squares + two_product(deviation, deviation);
  }
  if (all.successes == 0 || all.successes == all.trials || count < 2) return count;
  if (squares.high == 0) return trials;
  const double between = count / (count - 1) * squares.high / (trials * trials);
  const double within = share * (1 - share) / (trials - 1);
  const double t =
      student_half_width(confidence, trials - 1) / student_half_width(confidence, count - 1);
  return std::min(trials, trials * within / between * t * t);
}

}  // namespace

Result<Estimate> wilson_interval(const Count& count, double confidence) {
  if (auto error = check_count(count)) return *error;
  if (auto error = check_confidence(confidence)) return *error;
  if (count.trials == 0) return Error{ErrorKind::cannot_tell, "a share of 0 trials"};
  return wilson(static_cast<double>(count.successes), static_cast<double>(count.trials),
                confidence);
}

Result<Estimate> clustered_share(std::span<const Count> clusters, double confidence) {
  if (auto error = check_confidence(confidence)) return *error;
  Count all;
  for (const Count& cluster : clusters) {
    if (auto error = check_count(cluster)) return *error;
    all.successes += cluster.successes;
    all.trials += cluster.trials;
  }
  if (all.trials == 0) return Error{ErrorKind::cannot_tell, "a share of 0 trials"};
  const auto trials = static_cast<double>(all.trials);
  const auto successes = static_cast<double>(all.successes);
  const double effective = effective_trials(clusters, all, confidence);
  const bool is_all = all.successes == all.trials;
  Estimate result =
      wilson(is_all ? effective : successes * (effective / trials), effective, confidence);
  result.value = nine_digits(successes / trials);
  return result;
}

Result<McNemar> mcnemar(const DiscordantPairs& pairs) {
  if (pairs.only_first < 0 || pairs.only_second < 0) {
    return Error{ErrorKind::usage, fmt::format("{} and {} discordant pairs; accepted: 0 or more",
                                               pairs.only_first, pairs.only_second)};
  }
  McNemar result;
  const std::int64_t all = pairs.only_first + pairs.only_second;
  if (all == 0) return result;
  const auto fewer = static_cast<double>(std::min(pairs.only_first, pairs.only_second));
  result.p = nine_digits(std::min(1.0, 2 * fair_coin_at_most(fewer, static_cast<double>(all))));
  const Proportion share = clopper_pearson(static_cast<double>(pairs.only_first), all);
  const auto odds = [](double p) { return p < 1 ? nine_digits(p / (1 - p)) : infinity; };
  result.odds_ratio = Estimate{odds(share.value), odds(share.low), odds(share.high)};
  return result;
}

Result<Trend> cochran_armitage(std::span<const TrendGroup> groups) {
  DoubleDouble trials;
  DoubleDouble successes;
  DoubleDouble scores;
  for (const TrendGroup& group : groups) {
    if (auto error = check_count(group.count)) return *error;
    if (!std::isfinite(group.score)) {
      return Error{ErrorKind::usage,
                   fmt::format("score {} of a group; accepted: a finite number", group.score)};
    }
    const auto n = static_cast<double>(group.count.trials);
    trials = trials + n;
    successes = successes + static_cast<double>(group.count.successes);
    scores = scores + two_product(n, group.score);
  }
  const DoubleDouble failures = trials - successes;
  if (successes.high == 0 || failures.high == 0) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a trend of {} successes in {} trials: nothing varies", successes.high,
                             trials.high)};
  }
  const DoubleDouble mean = scores / trials;
  DoubleDouble with_share;
  DoubleDouble spread;
  for (const TrendGroup& group : groups) {
    const DoubleDouble distance = DoubleDouble(group.score) - mean;
    with_share = with_share + distance * static_cast<double>(group.count.successes);
    spread = spread + distance * distance * static_cast<double>(group.count.trials);
  }
  // The mean is rounded to 106 bits, so equal scores may leave a rest.
  if (!(spread.high > 0x1p-180 * (mean.high * mean.high) * trials.high)) {
    return Error{ErrorKind::cannot_tell, "a trend over groups with trials at one score only"};
  }
  const double variance = (successes / trials * (failures / trials)).high * spread.high;
  const double z = with_share.high / std::sqrt(variance);
  return Trend{nine_digits(z), nine_digits(normal_two_sided(z)),
               nine_digits((with_share / spread).high)};
}

Result<OddsRatio> odds_ratio(const Count& first, const Count& second, double confidence) {
  for (const Count& count : {first, second}) {
    if (auto error = check_count(count)) return *error;
    if (count.trials == 0) {
      return Error{ErrorKind::cannot_tell, "an odds ratio of a group of 0 trials"};
    }
  }
  if (auto error = check_confidence(confidence)) return *error;
  std::array<double, 4> cells = {
      static_cast<double>(first.successes), static_cast<double>(first.trials - first.successes),
      static_cast<double>(second.successes), static_cast<double>(second.trials - second.successes)};
  OddsRatio result;
  result.corrected = std::find(cells.begin(), cells.end(), 0.0) != cells.end();
  double variance = 0;
  for (double& cell : cells) {
    if (result.corrected) cell += 0.5;
    variance += 1 / cell;
  }
  const double value = cells[0] / cells[1] / (cells[2] / cells[3]);
  const double factor = exponential(normal_half_width(confidence) * std::sqrt(variance));
  result.ratio = {nine_digits(value), nine_digits(value / factor), nine_digits(value * factor)};
  return result;
}

Result<double> cohens_h(double first_share, double second_share) {
  for (const double share : {first_share, second_share}) {
    if (share >= 0 && share <= 1) continue;
    return Error{ErrorKind::usage, fmt::format("share {}; accepted: a number from 0 to 1", share)};
  }
  // I_x(½, ½) = 2 ÷ π · asin √x.
  const auto angle = [](double share) {
    return boost::math::constants::pi<double>() * incomplete_beta(0.5, 0.5, share);
  };
  return nine_digits(angle(first_share) - angle(second_share));
}

}  // namespace kvsim::statistics
