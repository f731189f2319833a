// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/order.h"

/// The one loop nest that gives an Order its meaning; every evaluator (softfloat, SIMD, heights,
/// printed trees) is an `Ops` for it:
///
///   template <class Ops> typename Ops::Value walk(const Order& order, std::int64_t n, Ops& ops)
///
/// where Ops has
///   Value                      the type of a partial sum
///   Value zero()               +0: the sum of no terms, and the start under init=zero
///   Value first(i)             term i starts a sum, stands alone or stands on the left of an add
///   Value add_term(acc, i)     acc + term i; may fuse the product of term i into the addition
///   Value add(left, right)     the sum of two partial sums
///   Value exact(range, from_zero)  the sum of an OrderRange of one or more terms, rounded once;
///                              with from_zero, +0 counts as one of the terms
///
/// The calls describe the tree completely. add_term is what an accumulator does with its next term,
/// and what pairwise and halving do with a single term on the right. Accumulators are joined by
/// add() even where they hold one term: a block, part or lane of one term is a partial sum, so
/// under fused products `blocks(1)` rounds each product where `sequential` does not. An empty lane,
/// accumulator, block or part is skipped. n = 0 gives zero(). Requires check_length(order, n).
///
/// Nothing is allocated, except one table for a perm that stands over anything but the whole input.

namespace kvsim {

/// The loop nest behind walk(): sums ranges of terms by the items of an order from `depth` inward.
/// Every range here has at least one term.
template <class Ops>
class OrderWalk {
 public:
  using Value = typename Ops::Value;

  OrderWalk(const Order& order, Ops& ops)
      : items_(order.items.data()), item_count_(order.items.size()), ops_(ops) {}

  /// Sum of `range` by the items from `depth` on.
  Value sum(std::size_t depth, const OrderRange& range) {
    if (depth == item_count_) return sequential(range, false);
    const OrderItem& item = items_[depth];
    switch (item.kind) {
      case OrderKind::reverse:
        return inside(depth, range.reversed());
      case OrderKind::permutation:
        return permuted(depth, range);
      case OrderKind::exact:
        return ops_.exact(range, item.init_zero);
      case OrderKind::pairwise:
      case OrderKind::halving:
        return tree(depth, range);
      case OrderKind::lanes:
        return lanes(depth, range);
      case OrderKind::blocks:
        return consecutive(depth, range, item.size);
      case OrderKind::split:
        return consecutive(depth, range, (range.count - 1) / item.size + 1);
      case OrderKind::sequential:
        break;
    }
    return sequential(range, item.init_zero);
  }

 private:
  /// The terms of a range as the parts of a join.
  struct Terms {
    static constexpr bool are_terms = true;
    OrderWalk& walk;
    const OrderRange& range;

    std::int64_t term(std::int64_t i) const { return range.at(i); }
    Value value(std::int64_t i) const { return walk.ops_.first(range.at(i)); }
  };

  /// The lanes of a `lanes` item over `body` as the parts of a join.
  struct Lanes {
    static constexpr bool are_terms = false;
    OrderWalk& walk;
    std::size_t depth;
    const OrderRange& body;

    /// Terms of accumulator u of lane w; count is 0 where there are none.
    OrderRange accumulator(std::int64_t w, std::int64_t u) const {
      const OrderItem& item = walk.items_[depth];
      const std::int64_t first = u * item.size + w;
      const std::int64_t step = item.size * item.accumulators;
      const std::int64_t length = first < body.count ? (body.count - 1 - first) / step + 1 : 0;
      return body.every(first, step, length);
    }
    Value value(std::int64_t w) const {
      const OrderItem& item = walk.items_[depth];
      Value sum = walk.inside(depth, accumulator(w, 0));
      for (std::int64_t u = 1; u < item.accumulators; ++u) {
        const OrderRange range = accumulator(w, u);
        if (range.count == 0) break;
        sum = walk.ops_.add(sum, walk.inside(depth, range));
      }
      return sum;
    }
  };

  /// An accumulator of item `depth` over `range`, summed by what is inside the item.
  Value inside(std::size_t depth, const OrderRange& range) {
    const bool init_zero = items_[depth].init_zero;
    if (depth + 1 == item_count_) return sequential(range, init_zero);
    if (init_zero) return ops_.add(ops_.zero(), sum(depth + 1, range));
    return sum(depth + 1, range);
  }

  Value add_terms(Value total, const OrderRange& range, std::int64_t from) {
    if (range.table == nullptr) {
      for (std::int64_t k = from; k < range.count; ++k) {
        total = ops_.add_term(total, range.base + range.stride * k);
      }
    } else {
      for (std::int64_t k = from; k < range.count; ++k) total = ops_.add_term(total, range.at(k));
    }
    return total;
  }

  Value sequential(const OrderRange& range, bool init_zero) {
    if (init_zero) return add_terms(ops_.zero(), range, 0);
    return add_terms(ops_.first(range.at(0)), range, 1);
  }

  /// Consecutive groups of `length` terms, their sums added in sequence.
  Value consecutive(std::size_t depth, const OrderRange& range, std::int64_t length) {
    std::int64_t begin = length < range.count ? length : range.count;
    const OrderRange head = range.part(0, begin);
    Value total = sum(depth + 1, head);
    if (items_[depth].init_zero) total = ops_.add(ops_.zero(), total);
    for (; begin < range.count; begin += length) {
      const std::int64_t rest = range.count - begin;
      total = ops_.add(total, sum(depth + 1, range.part(begin, length < rest ? length : rest)));
    }
    return total;
  }

  Value permuted(std::size_t depth, const OrderRange& range) {
    const std::vector<std::int64_t>& permutation = items_[depth].permutation;
    // check_length() refuses this; reading past the end would be worse than an unpermuted sum.
    if (static_cast<std::int64_t>(permutation.size()) != range.count) return inside(depth, range);
    if (range.table == nullptr && range.base == 0 && range.stride == 1) {
      return inside(depth, OrderRange{permutation.data(), 0, 1, range.count});
    }
    std::vector<std::int64_t> table;
    table.reserve(permutation.size());
    for (const std::int64_t k : permutation) table.push_back(range.at(k));
    return inside(depth, OrderRange{table.data(), 0, 1, range.count});
  }

  Value tree(std::size_t depth, const OrderRange& range) {
    const OrderItem& item = items_[depth];
    if (item.init_zero && range.count == 1) return ops_.add_term(ops_.zero(), range.at(0));
    const Terms terms{*this, range};
    const Value total = item.kind == OrderKind::pairwise ? join_pairwise(terms, 0, range.count)
                                                         : join_halving(terms, range.count);
    return item.init_zero ? ops_.add(ops_.zero(), total) : total;
  }

  Value lanes(std::size_t depth, const OrderRange& range) {
    const OrderItem& item = items_[depth];
    const std::int64_t rest = item.tail == LaneTail::masked ? 0 : range.count % item.size;
    const OrderRange body = range.part(0, range.count - rest);
    const OrderRange tail = range.part(body.count, rest);
    if (body.count == 0) return sequential(tail, item.init_zero);
    Value joined = join_lanes(depth, body);
    if (rest == 0) return joined;
    if (item.tail == LaneTail::scalar) return add_terms(joined, tail, 0);
    return ops_.add(sequential(tail, item.init_zero), joined);
  }

  Value join_lanes(std::size_t depth, const OrderRange& body) {
    const OrderItem& item = items_[depth];
    const Lanes parts{*this, depth, body};
    const std::int64_t used = item.size < body.count ? item.size : body.count;
    switch (item.join) {
      case LaneJoin::pairwise:
        return join_pairwise(parts, 0, used);
      case LaneJoin::halving:
        return join_halving(parts, used);
      case LaneJoin::sequential:
        break;
    }
    Value total = parts.value(0);
    for (std::int64_t w = 1; w < used; ++w) total = ops_.add(total, parts.value(w));
    return total;
  }

  template <class Parts>
  Value join_pairwise(const Parts& parts, std::int64_t first, std::int64_t count) {
    if (count == 1) return parts.value(first);
    const auto half =
        static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
    const Value left = join_pairwise(parts, first, half);
    if constexpr (Parts::are_terms) {
      if (count - half == 1) return ops_.add_term(left, parts.term(first + half));
    }
    return ops_.add(left, join_pairwise(parts, first + half, count - half));
  }

  template <class Parts>
  Value join_halving(const Parts& parts, std::int64_t count) {
    int level = 0;
    while (width(count, level) > 1) ++level;
    return halving_node(parts, count, level, 0);
  }

  /// Nodes that are left after `level` rounds of halving: ⌈count / 2^level⌉.
  static std::int64_t width(std::int64_t count, int level) { return ((count - 1) >> level) + 1; }

  /// Node i after `level` rounds.
  template <class Parts>
  Value halving_node(const Parts& parts, std::int64_t count, int level, std::int64_t i) {
    if (level == 0) return parts.value(i);
    Value left = halving_node(parts, count, level - 1, i);
    const std::int64_t partner = i + width(count, level);
    if (partner >= width(count, level - 1)) return left;  // the odd middle passes up
    if constexpr (Parts::are_terms) {
      if (is_leaf(count, level - 1, partner)) return ops_.add_term(left, parts.term(partner));
    }
    return ops_.add(left, halving_node(parts, count, level - 1, partner));
  }

  /// True when node i after `level` rounds is part i itself, passed up unchanged.
  static bool is_leaf(std::int64_t count, int level, std::int64_t i) {
    for (; level > 0; --level) {
      if (i + width(count, level) < width(count, level - 1)) return false;
    }
    return true;
  }

  const OrderItem* items_;
  std::size_t item_count_;
  Ops& ops_;
};

/// The sum of terms 0 … n − 1 in the given order; see sim/order_walk.h.
template <class Ops>
inline typename Ops::Value walk(const Order& order, std::int64_t n, Ops& ops) {
  if (n <= 0) return ops.zero();
  return OrderWalk<Ops>(order, ops).sum(0, OrderRange{nullptr, 0, 1, n});
}

}  // namespace kvsim
