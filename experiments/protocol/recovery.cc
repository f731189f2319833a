// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// The figure of all prompts, with the interval of draws of them.
Result<RecoveryFigure> figure_of(std::int64_t prompts, const statistics::ClusterFigure& figure) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(prompts));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  RecoveryFigure result{.percent = figure(all), .interval = {}};
  if (prompts < 2) return result;
  const auto drawn = statistics::cluster_bootstrap(prompts, figure, {.resamples = 2000});
  if (!drawn) return drawn.error();
  result.interval = drawn->percentile;
  return result;
}

/// One decimal, three digits of large ones.
std::string percent_text(double percent) {
  if (std::fabs(percent) >= 1e4) return fmt::format("{:.3g}", percent);
  return fmt::format("{:.1f}", std::fabs(percent) < 0.05 ? 0.0 : percent);
}

}  // namespace

std::optional<double> recovery_percent(double kl_base, double kl_patched) {
  if (kl_base == 0 || !std::isfinite(kl_base) || !std::isfinite(kl_patched)) return {};
  return (kl_base - kl_patched) / kl_base * 100;
}

Result<Recovery> recovery_of(std::span<const RecoveryPair> prompts) {
  Recovery result;
  std::vector<RecoveryPair> pairs;
  std::vector<double> percents;
  pairs.reserve(prompts.size());
  percents.reserve(prompts.size());
  for (const RecoveryPair& pair : prompts) {
    const std::optional<double> percent = recovery_percent(pair.kl_base, pair.kl_patched);
    if (!percent) {
      ++result.undefined;
      continue;
    }
    pairs.push_back(pair);
    percents.push_back(*percent);
  }
  result.defined = std::ssize(pairs);
  if (pairs.empty()) return result;
  const auto pooled = figure_of(result.defined, [&](std::span<const std::int64_t> drawn) {
    double base = 0;
    double patched = 0;
    for (const std::int64_t i : drawn) {
      base += pairs[static_cast<std::size_t>(i)].kl_base;
      patched += pairs[static_cast<std::size_t>(i)].kl_patched;
    }
    return (base - patched) / base * 100;
  });
  if (!pooled) return pooled.error();
  result.pooled = *pooled;
  const auto mean = figure_of(result.defined, [&](std::span<const std::int64_t> drawn) {
    double sum = 0;
    for (const std::int64_t i : drawn) sum += percents[static_cast<std::size_t>(i)];
    return sum / static_cast<double>(drawn.size());
  });
  if (!mean) return mean.error();
  result.mean = *mean;
  std::ranges::sort(percents);
  result.median = statistics::sorted_quantile(percents, 0.5);
  return result;
}

SummaryCell recovery_cell(const std::optional<RecoveryFigure>& figure) {
  if (!figure) return {"-", json_of(figure)};
  const std::optional<statistics::Estimate>& interval = figure->interval;
  std::string text = percent_text(figure->percent);
  if (interval) {
    text += fmt::format(" ({} to {})", percent_text(interval->low), percent_text(interval->high));
  }
  return {text, json_of(figure)};
}

Json json_of(const std::optional<RecoveryFigure>& figure) {
  if (!figure) return nullptr;
  const std::optional<statistics::Estimate>& interval = figure->interval;
  return {{"value", json_of(figure->percent)},
          {"low", interval ? json_of(interval->low) : Json(nullptr)},
          {"high", interval ? json_of(interval->high) : Json(nullptr)}};
}

Json json_of(const Recovery& recovery) {
  return {{"defined", recovery.defined},
          {"undefined", recovery.undefined},
          {"pooled", json_of(recovery.pooled)},
          {"mean", json_of(recovery.mean)},
          {"median", json_of(recovery.median)}};
}

}  // namespace kvsim::experiments
