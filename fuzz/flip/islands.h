// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/parallel.h"
#include "softfloat/result.h"

/// What every search on islands shares. An island has `runs` and `members`.
namespace kvsim::fuzz {

template <class Island>
[[nodiscard]] std::int64_t total_runs(const std::vector<Island>& islands) {
  std::int64_t total = 0;
  for (const Island& island : islands) total += island.runs;
  return total;
}

/// The best member of each island takes the place of the worst one of the next.
template <class Island, class IsWorse>
void hand_on_best(std::vector<Island>& islands, const IsWorse& is_worse) {
  if (islands.size() < 2) return;
  auto best = std::vector<typename decltype(Island::members)::value_type>();
  best.reserve(islands.size());
  for (const Island& island : islands) {
    best.push_back(*std::ranges::max_element(island.members, is_worse));
  }
  for (std::size_t i = 0; i < islands.size(); ++i) {
    Island& next = islands[(i + 1) % islands.size()];
    *std::ranges::min_element(next.members, is_worse) = best[i];
  }
}

/// How far a search goes, and in which steps.
struct EpochPlan {
  std::int64_t total = 0;  ///< runs of all islands
  std::int64_t epoch = 1;  ///< runs of an island between two exchanges
  int threads = 1;         ///< changes time, never a result
};

/// Runs epochs until the total is reached, or `end_epoch`, asked after each, says no:
/// `run_island(i, n)` brings island i to n runs. Whole epochs end with hand_on_best(). Errors: the
/// first island's that has one.
template <class Island, class IsWorse, class RunIsland, class EndEpoch>
Result<bool> run_epochs(std::vector<Island>& islands, const EpochPlan& plan,
                        const IsWorse& is_worse, const RunIsland& run_island,
                        const EndEpoch& end_epoch) {
  const auto count = static_cast<std::int64_t>(islands.size());
  while (total_runs(islands) < plan.total) {
    // The end of the epoch that the slowest island is in.
    std::int64_t least = islands[0].runs;
    for (const Island& island : islands) least = std::min(least, island.runs);
    const std::int64_t epoch_end = (least / plan.epoch + 1) * plan.epoch;
    std::vector<Result<bool>> done(islands.size(), true);
    parallel_for(count, plan.threads, [&](std::int64_t i) {
      const std::int64_t share = plan.total / count + (i < plan.total % count ? 1 : 0);
      const auto number = static_cast<std::size_t>(i);
      done[number] = run_island(number, std::min(epoch_end, share));
    });
    for (const Result<bool>& each : done) {
      if (!each) return each.error();
    }
    const bool whole = std::ranges::all_of(
        islands, [&](const Island& island) { return island.runs >= epoch_end; });
    if (whole) hand_on_best(islands, is_worse);
    if (!end_epoch()) break;
  }
  return true;
}

}  // namespace kvsim::fuzz
