// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstdint>

#include "sim/order.h"
#include "softfloat/mutants.h"

/// The loops that walk() is made of, for any Ops of sim/order_walk.h: running sums over a range of
/// terms, and joins of the parts of a sum.
///
/// The parts of a join are an object with
///   are_terms                  true where the parts are single terms of the sum
///   Value value(i)             the sum of part i; called once for each part
///   Value add(left, right)     what joins two of them
///   std::int64_t term(i)       only where are_terms: the term that part i is
///   Value add_term(left, i)    only where are_terms: left + part i
namespace kvsim::order_walk {

/// total + the terms of `range` from its `from`-th on, one by one.
template <class Ops>
typename Ops::Value add_terms(Ops& ops, typename Ops::Value total, const OrderRange& range,
                              std::int64_t from = 0) {
  if (range.table == nullptr) {
    for (std::int64_t k = from; k < range.count; ++k) {
      total = ops.add_term(total, range.base + range.stride * k);
    }
  } else {
    for (std::int64_t k = from; k < range.count; ++k) total = ops.add_term(total, range.at(k));
  }
  return total;
}

/// The running sum of a range of one or more terms.
template <class Ops>
typename Ops::Value sequential(Ops& ops, const OrderRange& range, bool init_zero) {
  if (init_zero) return add_terms(ops, ops.zero(), range);
  return add_terms(ops, ops.first(range.at(0)), range, 1);
}

/// Parts first … first + count − 1, count ≥ 1: the left half is the largest power of two below
/// count.
template <class Parts>
auto join_pairwise(const Parts& parts, std::int64_t first, std::int64_t count)
    -> decltype(parts.value(first)) {
  if (count == 1) return parts.value(first);
  auto half = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
  if (mutant_is_on(Mutant::equal_halves)) half = (count + 1) / 2;
  const auto left = join_pairwise(parts, first, half);
  if constexpr (Parts::are_terms) {
    if (count - half == 1) return parts.add_term(left, first + half);
  }
  return parts.add(left, join_pairwise(parts, first + half, count - half));
}

/// Nodes that are left of `count` after `level` rounds of halving: ⌈count / 2^level⌉.
inline std::int64_t halving_width(std::int64_t count, int level) {
  return ((count - 1) >> level) + 1;
}

/// True when node i after `level` rounds is part i itself, passed up unchanged.
inline bool halving_leaf(std::int64_t count, int level, std::int64_t i) {
  for (; level > 0; --level) {
    if (i + halving_width(count, level) < halving_width(count, level - 1)) return false;
  }
  return true;
}

/// Node i after `level` rounds of halving.
template <class Parts>
auto halving_node(const Parts& parts, std::int64_t count, int level, std::int64_t i)
    -> decltype(parts.value(i)) {
  if (level == 0) return parts.value(i);
  auto left = halving_node(parts, count, level - 1, i);
  const std::int64_t partner = i + halving_width(count, level);
  if (partner >= halving_width(count, level - 1)) return left;  // the odd middle passes up
  if constexpr (Parts::are_terms) {
    if (halving_leaf(count, level - 1, partner)) return parts.add_term(left, partner);
  }
  return parts.add(left, halving_node(parts, count, level - 1, partner));
}

/// `count` ≥ 1 parts: i with i + ⌈count/2⌉ until one is left.
template <class Parts>
auto join_halving(const Parts& parts, std::int64_t count) {
  int level = 0;
  while (halving_width(count, level) > 1) ++level;
  return halving_node(parts, count, level, 0);
}

/// Parts `first`, `first` + step, `first` + 2 step … below `count` of a butterfly of `width` (a
/// power of two): those at the largest distance are joined first.
template <class Parts>
auto join_butterfly(const Parts& parts, std::int64_t count, std::int64_t width,
                    std::int64_t first = 0, std::int64_t step = 1) -> decltype(parts.value(first)) {
  if (step >= width) return parts.value(first);
  const auto left = join_butterfly(parts, count, width, first, 2 * step);
  if (first + step >= count) return left;
  return parts.add(left, join_butterfly(parts, count, width, first + step, 2 * step));
}

/// The smallest power of two that is at least `size`.
inline std::int64_t butterfly_width(std::int64_t size) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

/// `count` ≥ 1 parts joined as the lanes of an item of `size` lanes are, or as a merge in a tree.
template <class Parts>
auto join_parts(LaneJoin join, const Parts& parts, std::int64_t count, std::int64_t size) {
  switch (join) {
    case LaneJoin::pairwise:
      return join_pairwise(parts, 0, count);
    case LaneJoin::halving:
      return join_halving(parts, count);
    case LaneJoin::butterfly:
      if (mutant_is_on(Mutant::butterfly_is_pairwise)) return join_pairwise(parts, 0, count);
      return join_butterfly(parts, count, butterfly_width(size));
    case LaneJoin::sequential:
      break;
  }
  auto total = parts.value(0);
  for (std::int64_t i = 1; i < count; ++i) total = parts.add(total, parts.value(i));
  return total;
}

/// The terms of a range as the parts of a join.
template <class Ops>
struct Terms {
  static constexpr bool are_terms = true;
  Ops& ops;
  const OrderRange& range;

  using Value = typename Ops::Value;
  Value value(std::int64_t i) const { return ops.first(range.at(i)); }
  Value add(const Value& left, const Value& right) const { return ops.add(left, right); }
  Value add_term(const Value& left, std::int64_t i) const {
    return ops.add_term(left, range.at(i));
  }
};

}  // namespace kvsim::order_walk
