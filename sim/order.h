// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// What one item of an order does with the range of terms it stands over. An item cuts its range
/// into groups, has each group summed by the item to its right (`sequential` where there is none)
/// and joins the results.
enum class OrderKind : std::uint8_t {
  sequential,   ///< t0 + t1, then + t2, … from left to right; takes nothing inside
  reverse,      ///< the range from its last term to its first, summed by what is inside
  permutation,  ///< `perm(3,0,2,1)`: the range in the order term 3, 0, 2, 1, summed by what is
                ///< inside
  exact,        ///< the exact sum, rounded once; takes nothing inside
  pairwise,     ///< the left half is the largest power of two below n; takes nothing inside
  halving,      ///< i with i + ⌈n/2⌉, an odd middle element passes up unchanged; nothing inside
  lanes,        ///< element i goes to lane i mod W of accumulator (i ÷ W) mod U
  blocks,       ///< consecutive blocks of B terms, results added in sequence
  split,        ///< S consecutive parts of ⌈n/S⌉ terms, results merged in sequence
};

/// How `lanes` joins its lanes after the accumulators of each lane were joined 0 … U−1.
enum class LaneJoin : std::uint8_t { pairwise, halving, sequential };

/// What `lanes` does with the last n mod W elements.
enum class LaneTail : std::uint8_t {
  masked,        ///< they go to their lanes as usual; the other lanes of that row are left alone
  scalar,        ///< they are added one by one, in sequence, to the joined lanes
  scalar_first,  ///< they are summed in sequence and the joined lanes are added to that sum
};

/// One item of an order. Fields that the kind does not use keep their defaults.
struct OrderItem {
  OrderKind kind = OrderKind::sequential;
  std::int64_t size = 0;          ///< lanes: W; blocks: B; split: S; 1 … max_order_size
  std::int64_t accumulators = 1;  ///< lanes: U; 1 … max_order_size
  LaneJoin join = LaneJoin::pairwise;
  LaneTail tail = LaneTail::masked;
  /// `init=zero`: the accumulators of this item start from +0 instead of their first term:
  /// the running sum of sequential, reverse, perm, blocks and split, every accumulator of lanes
  /// (and its scalar tail where the tail starts a sum). Where an item stands inside reverse, perm
  /// or lanes, its result is added to the +0. pairwise and halving add their result to +0; exact
  /// counts +0 as one more term, without a rounding of its own.
  bool init_zero = false;
  std::vector<std::int64_t> permutation;  ///< perm: the numbers 0 … length − 1, each once

  friend bool operator==(const OrderItem&, const OrderItem&) = default;
};

/// The order in which n terms are summed: items outermost first, as in `split(4)/lanes(16,2)`.
/// Canonical: a trailing plain `sequential` inside another item is left out; never empty when it
/// comes from parse_order, and an empty list means `sequential`.
struct Order {
  std::vector<OrderItem> items;

  friend bool operator==(const Order&, const Order&) = default;
};

inline constexpr std::int64_t max_order_size = std::int64_t{1} << 20;  ///< largest W, U, B and S
inline constexpr std::size_t max_order_items = 16;                     ///< deepest nesting
inline constexpr std::size_t max_permutation_length = 4096;            ///< entries of one perm
inline constexpr std::size_t max_order_text = std::size_t{1} << 16;    ///< bytes of an order's text

/// Parses an order: items separated by `/`, outermost first. Items: `sequential`, `reverse`,
/// `perm(3,0,2,1)`, `exact`, `pairwise`, `halving`,
/// `lanes(W[,U][,join=pairwise|halving|sequential][,tail=masked|scalar|scalar-first])`,
/// `blocks(B)`, `split(S)`; every item takes `init=zero`. Blanks between words are ignored; numbers
/// are decimal. An error names the position (1 is the first character), what stands there and what
/// is accepted.
Result<Order> parse_order(std::string_view text);

/// The canonical text: parse_order(to_string(order)) gives the order back. Defaults are left out,
/// except that `lanes` always shows both of its numbers.
std::string to_string(const Order& order);

/// The canonical text of one item.
std::string to_string(const OrderItem& item);

/// Whether the order can sum n terms: n ≥ 0, and every `perm` stands over ranges of its own length.
/// Holds true, or says which perm meets which length.
Result<bool> check_length(const Order& order, std::int64_t n);

/// Height of the summation tree: the largest number of rounded additions between a term and the
/// sum of n terms. An exact sum of two or more terms counts as one; adding to the +0 of `init=zero`
/// rounds nothing and does not count. The rounding of products is not counted: a dot product with
/// rounded or fused products has at most one more. Requires check_length(order, n).
std::int64_t height(const Order& order, std::int64_t n);

/// The positions of the terms that an item stands over, in order: an arithmetic progression, or one
/// through a table of positions (below a perm).
struct OrderRange {
  const std::int64_t* table = nullptr;  ///< positions, or null: a position stands for itself
  std::int64_t base = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;

  /// Position of the k-th term, 0 ≤ k < count, in the caller's numbering.
  [[nodiscard]] std::int64_t at(std::int64_t k) const {
    const std::int64_t position = base + stride * k;
    return table == nullptr ? position : table[position];
  }
  /// `length` terms from the `first`-th on.
  [[nodiscard]] OrderRange part(std::int64_t first, std::int64_t length) const {
    return {table, base + stride * first, stride, length};
  }
  /// `length` terms: the `first`-th and every `step`-th after it.
  [[nodiscard]] OrderRange every(std::int64_t first, std::int64_t step, std::int64_t length) const {
    // A single term needs no stride, and step may be as large as W × U of nested lanes.
    return {table, base + stride * first, length > 1 ? stride * step : 1, length};
  }
  /// The same terms from the last to the first; count ≥ 1.
  [[nodiscard]] OrderRange reversed() const {
    return {table, base + stride * (count - 1), -stride, count};
  }
};

}  // namespace kvsim
