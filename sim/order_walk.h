// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/order.h"
#include "sim/order_joins.h"
#include "sim/order_libraries.h"
#include "softfloat/format.h"
#include "softfloat/mutants.h"

/// The one loop nest that gives an Order its meaning; every evaluator (softfloat, SIMD, heights,
/// trees) is an `Ops` for it:
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
///   Value unit(range, item)    the sum of one or more terms that the matrix unit item.unit gives,
///                              as one chain of instructions from +0, in the accumulator format
///   Value round_to(sum, format)  a partial sum rounded to another format, in the accumulator
///                              format
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
    if (depth == item_count_) return order_walk::sequential(ops_, range, false);
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
      case OrderKind::numpy_pairwise:
        return tree(item, range);
      case OrderKind::lanes:
        return lanes(depth, range);
      case OrderKind::blocks:
      case OrderKind::split:
        return merged(depth, range);
      case OrderKind::matrix_unit:
        return ops_.unit(range, item);
      case OrderKind::torch_cascade:
        return order_walk::TorchCascade<Ops>(ops_, item.size, item.accumulators == 2).sum(range);
      case OrderKind::torch_dot:
        return order_walk::TorchDot<Ops>(ops_, item.size).sum(range);
      case OrderKind::sequential:
        break;
    }
    return order_walk::sequential(ops_, range, item.init_zero);
  }

 private:
  /// The lanes of a `lanes` item over `body` as the parts of a join.
  struct Lanes {
    static constexpr bool are_terms = false;
    OrderWalk& walk;
    std::size_t depth;
    const OrderRange& body;
    OrderRange head = {};  ///< terms before those of lane 0
    OrderRange tail = {};  ///< and behind them

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
      Value sum = w == 0 && head.count > 0
                      ? order_walk::add_terms(
                            walk.ops_, order_walk::sequential(walk.ops_, head, item.init_zero),
                            accumulator(w, 0))
                      : walk.inside(depth, accumulator(w, 0));
      if (w == 0) sum = order_walk::add_terms(walk.ops_, sum, tail);
      for (std::int64_t u = 1; u < item.accumulators; ++u) {
        const OrderRange range = accumulator(w, u);
        if (range.count == 0) break;
        sum = walk.ops_.add(sum, walk.inside(depth, range));
      }
      return sum;
    }
    Value add(const Value& left, const Value& right) const { return walk.ops_.add(left, right); }
  };

  /// The parts of `blocks` and `split`, and how their sums are merged.
  struct Parts {
    static constexpr bool are_terms = false;
    OrderWalk& walk;
    std::size_t depth;
    const OrderRange& range;
    std::int64_t length;

    const OrderItem& item() const { return walk.items_[depth]; }
    std::int64_t count() const { return (range.count - 1) / length + 1; }
    Value value(std::int64_t i) const {
      const std::int64_t rest = range.count - i * length;
      const OrderRange part = range.part(i * length, length < rest ? length : rest);
      const Value sum = walk.sum(depth + 1, part);
      const std::optional<softfloat::Format>& format = item().partials;
      return format ? walk.ops_.round_to(sum, *format) : sum;
    }
    Value stored(const Value& sum) const {
      const std::optional<softfloat::Format>& format = item().running;
      return format ? walk.ops_.round_to(sum, *format) : sum;
    }
    Value add(const Value& left, const Value& right) const {
      return stored(walk.ops_.add(left, right));
    }
  };

  /// An accumulator of item `depth` over `range`, summed by what is inside the item.
  Value inside(std::size_t depth, const OrderRange& range) {
    const bool init_zero = items_[depth].init_zero;
    if (depth + 1 == item_count_) return order_walk::sequential(ops_, range, init_zero);
    if (init_zero) return ops_.add(ops_.zero(), sum(depth + 1, range));
    return sum(depth + 1, range);
  }

  /// Consecutive groups of terms, their sums merged.
  Value merged(std::size_t depth, const OrderRange& range) {
    const OrderItem& item = items_[depth];
    const Parts parts{*this, depth, range, part_length(item, range.count)};
    switch (item.merge) {
      case MergeOrder::pairwise:
        return merged_in_tree(parts, LaneJoin::pairwise);
      case MergeOrder::halving:
        return merged_in_tree(parts, LaneJoin::halving);
      case MergeOrder::butterfly:
        return merged_in_tree(parts, LaneJoin::butterfly);
      case MergeOrder::sequential:
      case MergeOrder::reverse:
        break;
    }
    const std::int64_t count = parts.count();
    const bool reverse = item.merge == MergeOrder::reverse;
    Value total = parts.value(reverse ? count - 1 : 0);
    if (item.init_zero) total = ops_.add(ops_.zero(), total);
    total = parts.stored(total);
    for (std::int64_t i = 1; i < count; ++i) {
      total = parts.add(total, parts.value(reverse ? count - 1 - i : i));
    }
    return total;
  }

  Value merged_in_tree(const Parts& parts, LaneJoin join) {
    const OrderItem& item = parts.item();
    const std::int64_t count = parts.count();
    const Value total = order_walk::join_parts(join, parts, count,
                                               item.kind == OrderKind::split ? item.size : count);
    return item.init_zero ? parts.add(ops_.zero(), total) : total;
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

  Value tree(const OrderItem& item, const OrderRange& range) {
    if (item.init_zero && range.count == 1) return ops_.add_term(ops_.zero(), range.at(0));
    const Value total = tree_from_terms(item, range);
    return item.init_zero ? ops_.add(ops_.zero(), total) : total;
  }

  Value tree_from_terms(const OrderItem& item, const OrderRange& range) {
    const order_walk::Terms<Ops> terms{ops_, range};
    if (item.kind == OrderKind::pairwise) return order_walk::join_pairwise(terms, 0, range.count);
    if (item.kind == OrderKind::halving) return order_walk::join_halving(terms, range.count);
    return order_walk::NumpyPairwise<Ops>(ops_).sum(range);
  }

  Value lanes(std::size_t depth, const OrderRange& range) {
    const OrderItem& item = items_[depth];
    const std::int64_t before = item.head < range.count ? item.head : range.count;
    const std::int64_t rest = lane_tail_length(item, range.count - before);
    const OrderRange head = range.part(0, before);
    const OrderRange body = range.part(before, range.count - before - rest);
    const OrderRange tail = range.part(before + body.count, rest);
    if (body.count == 0) return order_walk::sequential(ops_, range, item.init_zero);
    const bool joins_tail = item.tail == LaneTail::first_lane;
    const Lanes parts{*this, depth, body, head, joins_tail ? tail : OrderRange{}};
    const std::int64_t used = item.size < body.count ? item.size : body.count;
    const Value joined = order_walk::join_parts(item.join, parts, used, item.size);
    if (rest == 0 || joins_tail || mutant_is_on(Mutant::lane_tail_lost)) return joined;
    if (item.tail == LaneTail::scalar) return order_walk::add_terms(ops_, joined, tail);
    return ops_.add(order_walk::sequential(ops_, tail, item.init_zero), joined);
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
