// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/plateau.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/double_double.h"
#include "sim/philox.h"

namespace kvsim::metrics {
namespace {

using Lists = std::span<const std::vector<double>>;

std::optional<Error> check_divergences(std::string_view name, Lists lists) {
  for (std::size_t prompt = 0; prompt < lists.size(); ++prompt) {
    for (const double value : lists[prompt]) {
      if (value >= 0 && std::isfinite(value)) continue;
      return Error{ErrorKind::usage, fmt::format("{}: divergence {} of prompt {}; accepted: finite "
                                                 "numbers from 0",
                                                 name, value, prompt)};
    }
  }
  return std::nullopt;
}

/// The mean over all steps of the prompts drawn; NaN without steps.
double mean_of(Lists lists, std::span<const std::int64_t> drawn) {
  DoubleDouble sum;
  double count = 0;
  for (const std::int64_t prompt : drawn) {
    const std::vector<double>& values = lists[static_cast<std::size_t>(prompt)];
    for (const double value : values) sum = sum + value;
    count += static_cast<double>(values.size());
  }
  return count > 0 ? (sum / count).high : std::numeric_limits<double>::quiet_NaN();
}

Error named(std::string_view name, const Error& error) {
  return {error.kind, fmt::format("{}: {}", name, error.message)};
}

}  // namespace

Result<std::vector<std::int64_t>> unrelated_partners(std::int64_t prompts, std::uint64_t seed) {
  if (prompts < 2) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("unrelated pairs of {} prompts; needed: 2 or more", prompts)};
  }
  if (prompts >= std::int64_t{1} << 31) {
    return Error{ErrorKind::usage,
                 fmt::format("unrelated pairs of {} prompts; accepted: fewer than 2^31", prompts)};
  }
  std::vector<std::int64_t> partners;
  partners.reserve(static_cast<std::size_t>(prompts));
  for (std::int64_t prompt = 0; prompt < prompts; ++prompt) partners.push_back(prompt);
  for (std::size_t last = partners.size() - 1; last > 0; --last) {
    const std::uint64_t other = ((philox_bits(seed, 0, last) >> 32) * last) >> 32;  // below `last`
    std::swap(partners[last], partners[other]);
  }
  return partners;
}

Result<PlateauComparison> compare_with_plateau(Lists after_flip, Lists unrelated,
                                               const statistics::BootstrapSettings& settings) {
  if (after_flip.size() != unrelated.size()) {
    return Error{ErrorKind::usage, fmt::format("{} prompts after flips and {} of unrelated pairs; "
                                               "accepted: the same prompts",
                                               after_flip.size(), unrelated.size())};
  }
  if (auto error = check_divergences("after flips", after_flip)) return *error;
  if (auto error = check_divergences("unrelated pairs", unrelated)) return *error;
  const auto prompts = static_cast<std::int64_t>(after_flip.size());
  const auto draw = [&](const statistics::ClusterFigure& figure) {
    return statistics::cluster_bootstrap(prompts, figure, settings);
  };
  const Result<statistics::Bootstrap> after =
      draw([&](std::span<const std::int64_t> drawn) { return mean_of(after_flip, drawn); });
  if (!after) return named("after flips", after.error());
  const Result<statistics::Bootstrap> plateau =
      draw([&](std::span<const std::int64_t> drawn) { return mean_of(unrelated, drawn); });
  if (!plateau) return named("unrelated pairs", plateau.error());
  const Result<statistics::Bootstrap> ratio = draw([&](std::span<const std::int64_t> drawn) {
    return mean_of(after_flip, drawn) / mean_of(unrelated, drawn);
  });
  if (!ratio) return named("ratio", ratio.error());
  return PlateauComparison{*after, *plateau, *ratio};
}

}  // namespace kvsim::metrics
