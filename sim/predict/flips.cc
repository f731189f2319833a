// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/flips.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/attention_row.h"
#include "sim/inputs.h"
#include "sim/ulp.h"

namespace kvsim {
namespace {

// Margins at which the probability is taken within one bin: the midpoints of so many parts.
constexpr int parts_of_bin = 4;

std::vector<double> sorted_absolute(std::span<const LogitChange> changes) {
  std::vector<double> sizes;
  sizes.reserve(changes.size());
  for (const LogitChange& change : changes) sizes.push_back(std::abs(change.of_difference()));
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// The smallest element that at least `share` of all elements do not exceed.
double quantile(std::span<const double> sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto index = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

double root_mean_square(std::span<const LogitChange> changes) {
  double sum = 0;
  for (const LogitChange& change : changes) sum += change.of_difference() * change.of_difference();
  return changes.empty() ? 0 : std::sqrt(sum / static_cast<double>(changes.size()));
}

/// Flips among the four ways to see one trial: which token is on top, which one wins a tie.
int flips_of_trial(const LogitChange& change, double margin, double top,
                   const softfloat::Format& format) {
  const auto rounded = [&](double value) { return round_to(format, DoubleDouble(value)); };
  const double before = rounded(top) - rounded(top - margin);
  int flips = 0;
  for (const auto& [above, below] :
       {std::pair{change.first, change.second}, std::pair{change.second, change.first}}) {
    const double after = rounded(top + above) - rounded(top - margin + below);
    // Won by the token on top where it has the lower index, and where it has the higher one.
    flips += (before >= 0) != (after >= 0) ? 1 : 0;
    flips += (before > 0) != (after > 0) ? 1 : 0;
  }
  return flips;
}

double flips_on_grid(std::span<const LogitChange> changes, double margin, const LogitGrid& grid) {
  constexpr std::uint64_t stream = 0x746f706c6f676974;  // "toplogit"
  const double step = std::ldexp(1.0, ulp_exponent(grid.format, DoubleDouble(grid.top_logit)));
  std::int64_t flips = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double top = grid.top_logit + step * (uniform(grid.seed, stream, i) - 0.5);
    flips += flips_of_trial(changes[i], margin, top, grid.format);
  }
  return static_cast<double>(flips) / 4;
}

}  // namespace

DifferenceErrors summarize_changes(std::span<const LogitChange> changes) {
  DifferenceErrors result;
  result.trials = static_cast<std::int64_t>(changes.size());
  if (changes.empty()) return result;
  for (const LogitChange& change : changes) result.mean += change.of_difference();
  result.mean /= static_cast<double>(changes.size());
  result.deviation = root_mean_square(changes);
  const std::vector<double> sizes = sorted_absolute(changes);
  result.median_absolute = quantile(sizes, 0.5);
  result.absolute_99 = quantile(sizes, 0.99);
  result.largest = sizes.back();
  result.largest_upper_95 = largest_normal_quantile(result.deviation, result.trials, 0.95);
  result.share_beyond_largest = share_beyond_largest(result.trials);
  return result;
}

FlipRate flip_rate(std::span<const LogitChange> changes, double margin, const LogitGrid& grid) {
  FlipRate result;
  result.margin = margin;
  const auto trials = static_cast<std::int64_t>(changes.size());
  if (trials == 0) return result;
  if (grid.rounded) {
    result.probability = clopper_pearson(flips_on_grid(changes, margin, grid), trials);
  } else {
    const auto beyond = std::count_if(
        changes.begin(), changes.end(),
        [&](const LogitChange& change) { return std::abs(change.of_difference()) > margin; });
    // A change beyond the margin flips in one of its two directions.
    result.probability = clopper_pearson(static_cast<double>(beyond), trials);
    result.probability.value /= 2;
    result.probability.low /= 2;
    result.probability.high /= 2;
  }
  const double deviation = root_mean_square(changes);
  if (deviation > 0) result.normal_model = normal_probability_below(-margin / deviation);
  return result;
}

Proportion flips_per_thousand(std::span<const LogitChange> changes, std::span<const MarginBin> bins,
                              const LogitGrid& grid) {
  Proportion sum{0, 0, 0};
  std::int64_t tokens = 0;
  for (const MarginBin& bin : bins) {
    tokens += bin.count;
    if (bin.count == 0) continue;
    const double weight = static_cast<double>(bin.count) / parts_of_bin;
    for (int part = 0; part < parts_of_bin; ++part) {
      const double margin = bin.from + (bin.to - bin.from) * (part + 0.5) / parts_of_bin;
      const FlipRate rate = flip_rate(changes, margin, grid);
      sum.value += weight * rate.probability.value;
      sum.low += weight * rate.probability.low;
      sum.high += weight * rate.probability.high;
    }
  }
  if (tokens == 0) return sum;
  const double scale = 1000 / static_cast<double>(tokens);
  return {nine_digits(scale * sum.value), nine_digits(scale * sum.low),
          nine_digits(scale * sum.high)};
}

}  // namespace kvsim
