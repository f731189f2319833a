// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kvsim::fuzz {

/// A subset of `items` that passes the test, and none of whose items can be left out: the algorithm
/// ddmin of Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE
/// 28(2), 2002. Requires that the items pass together. Earlier items are tried first.
template <class Item, class Passes>
std::vector<Item> minimal_subset(std::vector<Item> items, const Passes& passes) {
  std::size_t parts = 2;
  while (items.size() >= 2) {
    const std::size_t count = std::min(parts, items.size());
    const auto edge = [&](std::size_t part) {
      return items.begin() + static_cast<std::ptrdiff_t>(items.size() * part / count);
    };
    std::vector<Item> smaller;
    for (std::size_t i = 0; i < count && smaller.empty(); ++i) {
      std::vector<Item> part(edge(i), edge(i + 1));
      if (passes(part)) smaller = std::move(part);
    }
    if (!smaller.empty()) {
      items = std::move(smaller);
      parts = 2;
      continue;
    }
    // Of the complements the one without the last items first.
    for (std::size_t i = count; i-- > 0 && smaller.empty() && count > 2;) {
      std::vector<Item> rest(items.begin(), edge(i));
      rest.insert(rest.end(), edge(i + 1), items.end());
      if (passes(rest)) smaller = std::move(rest);
    }
    if (!smaller.empty()) {
      items = std::move(smaller);
      parts = std::max<std::size_t>(count - 1, 2);
      continue;
    }
    if (count == items.size()) break;
    parts = 2 * count;
  }
  return items;
}

}  // namespace kvsim::fuzz
