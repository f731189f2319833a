// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// What one item of an order does with the range of terms it stands over. An item cuts its range
/// into groups, has each group summed by the item to its right (`sequential` where there is none)
/// and joins the results.
enum class OrderKind : std::uint8_t {
  sequential,      ///< t0 + t1, then + t2, … from left to right; takes nothing inside
  reverse,         ///< the range from its last term to its first, summed by what is inside
  permutation,     ///< `perm(3,0,2,1)`: the range in the order term 3, 0, 2, 1, summed by what is
                   ///< inside
  exact,           ///< the exact sum, rounded once; takes nothing inside
  pairwise,        ///< the left half is the largest power of two below n; takes nothing inside
  halving,         ///< i with i + ⌈n/2⌉, an odd middle element passes up unchanged; nothing inside
  lanes,           ///< element i goes to lane i mod W of accumulator (i ÷ W) mod U
  blocks,          ///< consecutive blocks of B terms, results merged
  split,           ///< S consecutive parts of ⌈n/S⌉ terms, results merged
  matrix_unit,     ///< `mma(UNIT)`: a chain of a matrix unit's instructions from +0, the last one
                   ///< filled up with zeros (unit_dot() of sim/units/dot.h); takes nothing inside
  numpy_pairwise,  ///< `numpy-pairwise`: NumPy's sum of contiguous numbers; takes nothing inside
  torch_cascade,   ///< `torch-cascade(W)`: PyTorch's sum on a CPU with W lanes;
                   ///< `torch-cascade(W,2)`: that of 16-bit numbers; nothing inside
  torch_dot,  ///< `torch-dot(W)`: PyTorch's dot product of 16-bit numbers on a CPU with W lanes;
              ///< nothing inside
};

/// How `lanes` joins its lanes after the accumulators of each lane were joined 0 … U−1.
enum class LaneJoin : std::uint8_t {
  pairwise,    ///< neighbours first: a warp's xor 1, 2, 4 …
  halving,     ///< lane i with lane i + ⌈n/2⌉ of the n lanes that hold a sum, and so on
  sequential,  ///< lane 0, then + lane 1, …
  butterfly,   ///< i with i + W/2, then W/4 … 1, with W rounded up to a power of two; an absent
               ///< partner is skipped: a warp's xor 16, 8, 4, 2, 1
};

/// How `blocks` and `split` merge the sums of their parts.
enum class MergeOrder : std::uint8_t {
  sequential,  ///< first + second, then + third, …
  reverse,     ///< last + last but one, … down to the first
  pairwise,    ///< as LaneJoin::pairwise
  halving,     ///< as LaneJoin::halving
  butterfly,   ///< as LaneJoin::butterfly, with W the parts of `split`, the blocks of `blocks`
};

/// What `lanes` does with the last n mod W elements, or n mod `multiple`.
enum class LaneTail : std::uint8_t {
  masked,        ///< they go to their lanes as usual; the other lanes of that row are left alone
  scalar,        ///< they are added one by one, in sequence, to the joined lanes
  scalar_first,  ///< they are summed in sequence and the joined lanes are added to that sum
  first_lane,    ///< they are added to accumulator 0 of lane 0 before the join; nothing inside
};

/// One item of an order. Fields that the kind does not use keep their defaults.
struct OrderItem {
  OrderKind kind = OrderKind::sequential;
  /// lanes, torch-cascade, torch-dot: W; blocks: B; split: S; 1 … max_order_size
  std::int64_t size = 0;
  /// lanes: U; 1 … max_order_size. torch-cascade: terms that one number of a vector is the sum of;
  /// 1 or 2.
  std::int64_t accumulators = 1;
  LaneJoin join = LaneJoin::pairwise;
  LaneTail tail = LaneTail::masked;
  /// lanes: the first terms, which go to lane 0 one after the other before element 0 does; then the
  /// item takes nothing inside. 0 … max_order_size.
  std::int64_t head = 0;
  /// `init=zero`: the accumulators of this item start from +0 instead of their first term:
  /// the running sum of sequential, reverse, perm, blocks and split, every accumulator of lanes
  /// (and its scalar tail where the tail starts a sum). Where an item stands inside reverse, perm
  /// or lanes, its result is added to the +0. pairwise, halving and numpy-pairwise add their result
  /// to +0, and so do blocks and split where they merge in a tree; exact counts +0 as one more
  /// term, without a rounding of its own. mma, torch-cascade and torch-dot start from +0 as they
  /// are.
  bool init_zero = false;
  std::vector<std::int64_t> permutation = {};  ///< perm: the numbers 0 … length − 1, each once
  /// split: the length of a part is rounded up to a multiple of this; 1 … max_order_size. lanes
  /// with another tail than masked: it begins after the largest multiple of this many elements; 1:
  /// of W.
  std::int64_t multiple = 1;
  MergeOrder merge = MergeOrder::sequential;  ///< blocks, split
  /// blocks, split: each part's sum is rounded to the accumulator and then to this format.
  std::optional<softfloat::Format> partials = std::nullopt;
  /// blocks, split: what the merging leaves is rounded to this format each time it is stored: the
  /// first part's sum (after init=zero) and every merged sum where parts are merged one after the
  /// other; in a tree the sum of every merge.
  std::optional<softfloat::Format> running = std::nullopt;
  std::string unit = {};  ///< mma: canonical text of a matrix unit without block scales

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
/// `lanes(W[,U][,join=pairwise|halving|sequential|butterfly]
/// [,tail=masked|scalar|scalar-first|first-lane][,multiple=N][,head=N])`,
/// `blocks(B[,MERGING])`, `split(S[,multiple=N][,MERGING])` with MERGING any of
/// `merge=sequential|reverse|pairwise|halving|butterfly`, `partials=FORMAT`, `running=FORMAT`;
/// `mma(UNIT)`, `numpy-pairwise`, `torch-cascade(W[,2])`, `torch-dot(W)`; every item but mma,
/// torch-cascade and torch-dot takes `init=zero`. Blanks between words are ignored; numbers are
/// decimal. An error names the position (1 is the first character), what stands there and what is
/// accepted.
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
/// rounded or fused products has at most one more. On a matrix unit the fused sum of a block counts
/// as one addition, with whatever accuracy that unit has; rounding a sum to another format
/// (`partials`, `running`) does not count. Requires check_length(order, n).
std::int64_t height(const Order& order, std::int64_t n);

/// Whether every rounding on the way is one to the accumulator format, to nearest: no matrix unit
/// and no other format for partial sums. Only then is height × unit roundoff an error bound.
bool rounds_to_accumulator_only(const Order& order);

/// Whether items of this kind take no item inside.
bool takes_nothing_inside(OrderKind kind);
/// Whether this one does not.
bool takes_nothing_inside(const OrderItem& item);

/// lanes: elements of n that do not go to lanes, behind the head.
std::int64_t lane_tail_length(const OrderItem& item, std::int64_t n);

/// Terms of one part that `blocks` or `split` makes of a range of n ≥ 1 terms; the last part may
/// have fewer.
std::int64_t part_length(const OrderItem& item, std::int64_t n);

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
