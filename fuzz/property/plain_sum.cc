// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/plain_sum.h"

#include <algorithm>
#include <cstddef>

namespace kvsim::fuzz {
namespace {

using Numbers = std::vector<float>;

float in_sequence(const Numbers& x) {
  float sum = x.front();
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
  return sum;
}

/// Neighbours become one, until one is left.
float in_pairs(Numbers x) {
  while (x.size() > 1) {
    Numbers next;
    for (std::size_t i = 0; i + 1 < x.size(); i += 2) next.push_back(x[i] + x[i + 1]);
    if (x.size() % 2 == 1) next.push_back(x.back());
    x = next;
  }
  return x.front();
}

/// The upper half is added to the lower one; an odd middle stays.
float in_halves(Numbers x) {
  while (x.size() > 1) {
    const std::size_t half = (x.size() + 1) / 2;
    for (std::size_t i = 0; i + half < x.size(); ++i) x[i] += x[i + half];
    x.resize(half);
  }
  return x.front();
}

/// As in_halves(), of as many lanes as the least power of two that is `lanes` or more.
float in_butterfly(Numbers x, std::size_t lanes) {
  std::size_t width = 1;
  while (width < lanes) width *= 2;
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half && i + half < x.size(); ++i) x[i] += x[i + half];
  }
  return x.front();
}

float joined(LaneJoin join, const Numbers& x, std::size_t lanes) {
  switch (join) {
    case LaneJoin::pairwise:
      return in_pairs(x);
    case LaneJoin::halving:
      return in_halves(x);
    case LaneJoin::butterfly:
      return in_butterfly(x, lanes);
    case LaneJoin::sequential:
      break;
  }
  return in_sequence(x);
}

float merged(const OrderItem& item, Numbers x) {
  const auto parts = static_cast<std::size_t>(item.size);
  const std::size_t lanes = item.kind == OrderKind::split ? parts : x.size();
  switch (item.merge) {
    case MergeOrder::pairwise:
      return joined(LaneJoin::pairwise, x, lanes);
    case MergeOrder::halving:
      return joined(LaneJoin::halving, x, lanes);
    case MergeOrder::butterfly:
      return joined(LaneJoin::butterfly, x, lanes);
    case MergeOrder::reverse:
      std::ranges::reverse(x);
      break;
    case MergeOrder::sequential:
      break;
  }
  return in_sequence(x);
}

float sum_from(std::span<const OrderItem> items, const Numbers& x);

float lanes_of(const OrderItem& item, std::span<const OrderItem> inside, const Numbers& x) {
  const auto width = static_cast<std::size_t>(item.size);
  const auto accumulators = static_cast<std::size_t>(item.accumulators);
  Numbers lanes;
  for (std::size_t lane = 0; lane < std::min(width, x.size()); ++lane) {
    Numbers sums;
    for (std::size_t k = 0; k < accumulators; ++k) {
      Numbers own;
      for (std::size_t i = lane + k * width; i < x.size(); i += width * accumulators) {
        own.push_back(x[i]);
      }
      if (!own.empty()) sums.push_back(sum_from(inside, own));
    }
    lanes.push_back(in_sequence(sums));
  }
  return joined(item.join, lanes, width);
}

float parts_of(const OrderItem& item, std::span<const OrderItem> inside, const Numbers& x) {
  const auto size = static_cast<std::size_t>(item.size);
  const auto multiple = static_cast<std::size_t>(item.multiple);
  std::size_t length = item.kind == OrderKind::blocks ? size : (x.size() + size - 1) / size;
  while (length % multiple != 0) ++length;
  Numbers sums;
  for (std::size_t begin = 0; begin < x.size(); begin += length) {
    const std::size_t end = std::min(begin + length, x.size());
    sums.push_back(sum_from(inside, Numbers(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                            x.begin() + static_cast<std::ptrdiff_t>(end))));
  }
  return merged(item, sums);
}

float sum_from(std::span<const OrderItem> items, const Numbers& x) {
  if (items.empty()) return in_sequence(x);
  const OrderItem& item = items.front();
  switch (item.kind) {
    case OrderKind::reverse:
      return sum_from(items.subspan(1), Numbers(x.rbegin(), x.rend()));
    case OrderKind::pairwise:
      return in_pairs(x);
    case OrderKind::halving:
      return in_halves(x);
    case OrderKind::lanes:
      return lanes_of(item, items.subspan(1), x);
    case OrderKind::blocks:
    case OrderKind::split:
      return parts_of(item, items.subspan(1), x);
    default:
      break;
  }
  return in_sequence(x);
}

bool is_plain(const OrderItem& item) {
  switch (item.kind) {
    case OrderKind::sequential:
    case OrderKind::reverse:
    case OrderKind::pairwise:
    case OrderKind::halving:
    case OrderKind::lanes:
    case OrderKind::blocks:
    case OrderKind::split:
      break;
    default:
      return false;
  }
  return !item.init_zero && item.head == 0 && item.tail == LaneTail::masked && !item.partials &&
         !item.running;
}

}  // namespace

bool has_plain_sum(const Order& order) { return std::ranges::all_of(order.items, is_plain); }

float plain_sum(const Order& order, std::span<const float> terms) {
  return sum_from(order.items, Numbers(terms.begin(), terms.end()));
}

}  // namespace kvsim::fuzz
