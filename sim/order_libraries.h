// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sim/order.h"
#include "sim/order_joins.h"

/// The sums of two libraries, as loops for any Ops of sim/order_walk.h.
namespace kvsim::order_walk {

/// NumPy's pairwise sum of contiguous float numbers (numpy, `loops_utils.h.src`, PW_BLOCKSIZE 128):
/// fewer than 8 terms in sequence; up to 128 terms in 8 accumulators that are joined as
/// ((0+1)+(2+3))+((4+5)+(6+7)), then the last n mod 8 terms one by one; more are cut at n/2 rounded
/// down to a multiple of 8. `range` has one or more terms.
template <class Ops>
class NumpyPairwise {
 public:
  using Value = typename Ops::Value;

  explicit NumpyPairwise(Ops& ops) : ops_(ops) {}

  Value sum(const OrderRange& range) {
    const std::int64_t n = range.count;
    if (n < accumulators) return sequential(ops_, range, false);
    if (n <= block) {
      const std::int64_t body = n - n % accumulators;
      return add_terms(ops_,
                       join_pairwise(Accumulators{ops_, range.part(0, body)}, 0, accumulators),
                       range.part(body, n - body));
    }
    const std::int64_t half = n / 2 - n / 2 % accumulators;
    const Value left = sum(range.part(0, half));
    return ops_.add(left, sum(range.part(half, n - half)));
  }

 private:
  static constexpr std::int64_t accumulators = 8;
  static constexpr std::int64_t block = 128;

  struct Accumulators {
    static constexpr bool are_terms = false;
    Ops& ops;
    OrderRange body;

    Value value(std::int64_t i) const {
      return sequential(ops, body.every(i, accumulators, body.count / accumulators), false);
    }
    Value add(const Value& left, const Value& right) const { return ops.add(left, right); }
  };

  Ops& ops_;
};

/// PyTorch's sum over a contiguous dimension on a CPU (ATen `cpu/SumKernel.cpp`): vectors of W
/// lanes go in turn to 4 accumulators. Each is a cascade of 4 levels: 16 vectors (2^⌊⌈log2 m⌉/4⌋
/// where the accumulator gets m ≥ 2^20) are summed from +0 and then added to the level above, which
/// is emptied into the next one after as many sums. The left-over vectors go to accumulator 0, then
/// the other accumulators; last come the left-over terms, summed from +0, and to them the lanes in
/// sequence. Fewer than W terms are summed as with one lane. `range` has one or more terms.
template <class Ops>
class TorchCascade {
 public:
  using Value = typename Ops::Value;

  TorchCascade(Ops& ops, std::int64_t width) : ops_(ops), width_(width) {}

  Value sum(const OrderRange& range) {
    const std::int64_t width = range.count < width_ ? 1 : width_;
    const std::int64_t vectors = range.count / width;
    const OrderRange tail = range.part(vectors * width, range.count - vectors * width);
    const auto lane_of = [&](std::int64_t w) { return lane(range.every(w, width, vectors)); };
    const bool has_tail = tail.count > 0;
    Value total = has_tail ? sequential(ops_, tail, true) : lane_of(0);
    for (std::int64_t w = has_tail ? 0 : 1; w < width; ++w) total = ops_.add(total, lane_of(w));
    return total;
  }

 private:
  static constexpr std::int64_t accumulators = 4;
  static constexpr int levels = 4;

  /// One lane of all vectors.
  Value lane(const OrderRange& terms) {
    const std::int64_t rows = terms.count / accumulators;
    const OrderRange rest = terms.part(rows * accumulators, terms.count - rows * accumulators);
    if (rows == 0) return sequential(ops_, rest, true);
    Value total = add_terms(ops_, cascade(terms.every(0, accumulators, rows)), rest);
    for (std::int64_t u = 1; u < accumulators; ++u) {
      total = ops_.add(total, cascade(terms.every(u, accumulators, rows)));
    }
    return total;
  }

  /// ⌈log2 n⌉, and 1 for n ≤ 2.
  static int ceil_log2(std::int64_t n) {
    return n <= 2 ? 1 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  }

  /// One accumulator of one lane; one or more terms. Adding to a level that is still +0 changes
  /// nothing.
  Value cascade(const OrderRange& terms) {
    const int power = std::max(4, ceil_log2(terms.count) / levels);
    const std::int64_t chunks = terms.count >> power;
    const OrderRange rest = terms.part(chunks << power, terms.count - (chunks << power));
    // Level 1 holds the chunks since it was last emptied, level 2 the full groups of them; the
    // highest level is never emptied.
    const auto emptied = [&](int level) {
      const std::int64_t sums = chunks >> ((level - 1) * power);
      return level + 1 < levels ? (sums >> power) << power : std::int64_t{0};
    };
    const auto held = [&](int level) { return (chunks >> ((level - 1) * power)) - emptied(level); };
    const auto level_sum = [&](int level) {
      return sums_of(terms, power, level - 1, emptied(level), held(level));
    };
    int level = 1;
    if (rest.count == 0) {
      while (held(level) == 0) ++level;
    }
    Value total = rest.count > 0 ? sequential(ops_, rest, true) : level_sum(level++);
    for (; level < levels; ++level) {
      if (held(level) > 0) total = ops_.add(total, level_sum(level));
    }
    return total;
  }

  /// `count` sums of `level` (0: chunks of 2^power terms; each level holds 2^power of the one
  /// below) from the `first`-th on, added in sequence.
  Value sums_of(const OrderRange& terms, int power, int level, std::int64_t first,
                std::int64_t count) {
    const auto sum_of = [&](std::int64_t i) {
      if (level > 0) return sums_of(terms, power, level - 1, i << power, std::int64_t{1} << power);
      return sequential(ops_, terms.part(i << power, std::int64_t{1} << power), true);
    };
    Value total = sum_of(first);
    for (std::int64_t i = 1; i < count; ++i) total = ops_.add(total, sum_of(first + i));
    return total;
  }

  Ops& ops_;
  std::int64_t width_;
};

}  // namespace kvsim::order_walk
