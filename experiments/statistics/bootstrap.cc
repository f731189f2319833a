// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/double_double.h"
#include "sim/normal_quantile.h"
#include "sim/parallel.h"
#include "sim/philox.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

std::optional<Error> check_settings(std::int64_t clusters, const BootstrapSettings& settings) {
  if (auto error = check_confidence(settings.confidence)) return error;
  if (settings.resamples < 2) {
    return Error{ErrorKind::usage, fmt::format("a bootstrap of {} resamples; accepted: 2 or more",
                                               settings.resamples)};
  }
  if (clusters >= std::int64_t{1} << 31) {
    return Error{ErrorKind::usage, fmt::format("a bootstrap of {} clusters; accepted: fewer than "
                                               "2^31",
                                               clusters)};
  }
  if (clusters >= 2) return std::nullopt;
  return Error{ErrorKind::cannot_tell,
               fmt::format("a bootstrap of {} clusters; needed: 2 or more", clusters)};
}

std::vector<std::int64_t> draw(std::int64_t clusters, const BootstrapSettings& settings,
                               std::int64_t resample) {
  const auto count = static_cast<std::uint64_t>(clusters);
  const std::uint64_t begin = static_cast<std::uint64_t>(resample) * count;
  std::vector<std::int64_t> drawn;
  drawn.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = philox_bits(settings.seed, settings.stream, begin + i) >> 32;
    drawn.push_back(static_cast<std::int64_t>((bits * count) >> 32));
  }
  return drawn;
}

/// The figure without each cluster in turn.
std::vector<double> jackknife(std::int64_t clusters, const ClusterFigure& figure, int threads) {
  std::vector<double> values(static_cast<std::size_t>(clusters));
  parallel_for(clusters, threads, [&](std::int64_t left_out) {
    std::vector<std::int64_t> kept;
    kept.reserve(values.size());
    for (std::int64_t i = 0; i < clusters; ++i) {
      if (i != left_out) kept.push_back(i);
    }
    values[static_cast<std::size_t>(left_out)] = figure(kept);
  });
  return values;
}

/// Σ d³ ÷ (6 (Σ d²)^1.5) of the deviations from the mean, mean − value; 0 where all are equal.
double acceleration_of(std::span<const double> values) {
  const double mean = moments(values).mean;
  DoubleDouble squares;
  DoubleDouble cubes;
  for (const double value : values) {
    const DoubleDouble deviation = two_sum(mean, -value);
    const DoubleDouble square = deviation * deviation;
    squares = squares + square;
    cubes = cubes + square * deviation;
  }
  if (squares.high == 0) return 0;
  return cubes.high / (6 * squares.high * std::sqrt(squares.high));
}

/// The share of resamples below the value, equal ones counted half.
double share_below(std::span<const double> ascending, double value) {
  const auto equal = std::equal_range(ascending.begin(), ascending.end(), value);
  const auto below = static_cast<double>(equal.first - ascending.begin());
  const auto not_above = static_cast<double>(equal.second - ascending.begin());
  return (below + not_above) / (2 * static_cast<double>(ascending.size()));
}

/// Where BCa reads the resamples instead of at Φ(z).
double corrected_probability(const Bootstrap& result, double z) {
  const double shifted = result.bias_correction + z;
  return normal_below(result.bias_correction + shifted / (1 - result.acceleration * shifted));
}

}  // namespace

Result<Bootstrap> cluster_bootstrap(std::int64_t clusters, const ClusterFigure& figure,
                                    const BootstrapSettings& settings) {
  if (auto error = check_settings(clusters, settings)) return *error;
  std::vector<std::int64_t> all(static_cast<std::size_t>(clusters));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const double value = figure(all);
  if (!std::isfinite(value)) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a bootstrap of a figure that is {} for the data themselves", value)};
  }
  std::vector<double> values(static_cast<std::size_t>(settings.resamples));
  parallel_for(settings.resamples, settings.threads, [&](std::int64_t resample) {
    values[static_cast<std::size_t>(resample)] = figure(draw(clusters, settings, resample));
  });
  std::erase_if(values, [](double x) { return !std::isfinite(x); });
  Bootstrap result;
  result.undefined = settings.resamples - static_cast<std::int64_t>(values.size());
  if (values.size() < 2 || result.undefined > settings.resamples / 2) {
    return Error{ErrorKind::cannot_tell, fmt::format("a figure that is undefined in {} of {} "
                                                     "resamples",
                                                     result.undefined, settings.resamples)};
  }
  result.standard_error = nine_digits(std::sqrt(moments(values).variance()));
  std::sort(values.begin(), values.end());
  const double z = normal_half_width(settings.confidence);
  const double rounded = nine_digits(value);
  result.percentile = {rounded, nine_digits(sorted_quantile(values, (1 - settings.confidence) / 2)),
                       nine_digits(sorted_quantile(values, (1 + settings.confidence) / 2))};
  const double below = share_below(values, value);
  const std::vector<double> without = jackknife(clusters, figure, settings.threads);
  const bool defined =
      std::all_of(without.begin(), without.end(), [](double x) { return std::isfinite(x); });
  if (!(below > 0 && below < 1) || !defined) return result;
  result.bias_correction = normal_quantile(below);
  result.acceleration = acceleration_of(without);
  const double low = sorted_quantile(values, corrected_probability(result, -z));
  const double high = sorted_quantile(values, corrected_probability(result, z));
  result.bca = Estimate{rounded, nine_digits(low), nine_digits(high)};
  result.bias_correction = nine_digits(result.bias_correction);
  result.acceleration = nine_digits(result.acceleration);
  return result;
}

Result<Bootstrap> bootstrap_mean(std::span<const std::vector<double>> clusters,
                                 const BootstrapSettings& settings) {
  std::vector<DoubleDouble> sums;
  sums.reserve(clusters.size());
  for (const std::vector<double>& cluster : clusters) {
    if (auto error = check_finite(fmt::format("cluster {}", sums.size() + 1), cluster)) {
      return *error;
    }
    DoubleDouble sum;
    for (const double x : cluster) sum = sum + x;
    sums.push_back(sum);
  }
  const ClusterFigure mean = [&](std::span<const std::int64_t> drawn) {
    DoubleDouble sum;
    double count = 0;
    for (const std::int64_t cluster : drawn) {
      const auto index = static_cast<std::size_t>(cluster);
      sum = sum + sums[index];
      count += static_cast<double>(clusters[index].size());
    }
    return count > 0 ? (sum / count).high : std::numeric_limits<double>::quiet_NaN();
  };
  return cluster_bootstrap(static_cast<std::int64_t>(clusters.size()), mean, settings);
}

}  // namespace kvsim::statistics
