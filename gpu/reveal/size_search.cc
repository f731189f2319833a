// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/size_search.h"

#include <cstddef>
#include <set>

namespace kvsim::gpu {
namespace {

/// Half way between neighbouring classes that are apart, at most so many.
std::vector<std::int64_t> between(const std::vector<SizeClass>& classes, std::int64_t most) {
  std::vector<std::int64_t> next;
  for (std::size_t i = 1; i < classes.size(); ++i) {
    const std::int64_t before = classes[i - 1].last;
    const std::int64_t gap = classes[i].first - before;
    if (gap > 1 && static_cast<std::int64_t>(next.size()) < most) next.push_back(before + gap / 2);
  }
  return next;
}

}  // namespace

Result<bool> look_at_sizes(const SizeSweep& range, const LookAtSize& look,
                           const SizeClasses& classes) {
  std::set<std::int64_t> seen;
  const auto look_once = [&](std::int64_t size) -> Result<bool> {
    return seen.insert(size).second ? look(size) : true;
  };
  const bool all = range.last - range.first < range.every;
  for (std::int64_t step = 0; range.first + step <= range.last;
       step = all || step < 8 ? step + 1 : step + step / 2) {
    if (const auto done = look_once(range.first + step); !done) return done;
  }
  if (const auto done = look_once(range.last); !done) return done;
  for (;;) {
    const auto left = range.most - static_cast<std::int64_t>(seen.size());
    const std::vector<std::int64_t> next = between(classes(), left);
    if (next.empty()) return true;
    for (const std::int64_t size : next) {
      if (const auto done = look_once(size); !done) return done;
    }
  }
}

}  // namespace kvsim::gpu
