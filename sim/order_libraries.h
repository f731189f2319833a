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
/// sequence. Fewer than W terms are summed as with one lane. Of 16-bit numbers (`paired`) a vector
/// is the sum of two: element i of 2 W terms plus element i + W. `range` has one or more terms.
template <class Ops>
class TorchCascade {
 public:
  using Value = typename Ops::Value;

  TorchCascade(Ops& ops, std::int64_t width, bool paired)
      : ops_(ops), width_(width), paired_(paired) {}

  Value sum(const OrderRange& range) {
    const std::int64_t loaded = paired_ ? 2 * width_ : width_;
    if (range.count < loaded) return lane({range, {}, false});
    const std::int64_t vectors = range.count / loaded;
    const OrderRange tail = range.part(vectors * loaded, range.count - vectors * loaded);
    const auto lane_of = [&](std::int64_t w) {
      const OrderRange high = paired_ ? range.every(w + width_, loaded, vectors) : OrderRange{};
      return lane({range.every(w, loaded, vectors), high, paired_});
    };
    const bool has_tail = tail.count > 0;
    Value total = has_tail ? sequential(ops_, tail, true) : lane_of(0);
    for (std::int64_t w = has_tail ? 0 : 1; w < width_; ++w) total = ops_.add(total, lane_of(w));
    return total;
  }

 private:
  static constexpr std::int64_t accumulators = 4;
  static constexpr int levels = 4;

  /// The elements of one lane: terms, or sums of two.
  struct Elements {
    OrderRange low;
    OrderRange high;
    bool paired = false;

    [[nodiscard]] std::int64_t count() const { return low.count; }
    [[nodiscard]] Elements part(std::int64_t first, std::int64_t length) const {
      return {low.part(first, length), high.part(first, length), paired};
    }
    [[nodiscard]] Elements every(std::int64_t first, std::int64_t step, std::int64_t length) const {
      return {low.every(first, step, length), high.every(first, step, length), paired};
    }
  };

  /// total + the elements, one by one.
  Value add_elements(Value total, const Elements& elements) {
    if (!elements.paired) return add_terms(ops_, total, elements.low);
    for (std::int64_t k = 0; k < elements.count(); ++k) {
      const Value low = ops_.first(elements.low.at(k));
      total = ops_.add(total, ops_.add(low, ops_.first(elements.high.at(k))));
    }
    return total;
  }

  /// One lane of all vectors.
  Value lane(const Elements& elements) {
    const std::int64_t rows = elements.count() / accumulators;
    const Elements rest =
        elements.part(rows * accumulators, elements.count() - rows * accumulators);
    if (rows == 0) return add_elements(ops_.zero(), rest);
    Value total = add_elements(cascade(elements.every(0, accumulators, rows)), rest);
    for (std::int64_t u = 1; u < accumulators; ++u) {
      total = ops_.add(total, cascade(elements.every(u, accumulators, rows)));
    }
    return total;
  }

  /// ⌈log2 n⌉, and 1 for n ≤ 2.
  static int ceil_log2(std::int64_t n) {
    return n <= 2 ? 1 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  }

  /// One accumulator of one lane; one or more elements. Adding to a level that is still +0 changes
  /// nothing.
  Value cascade(const Elements& elements) {
    const int power = std::max(4, ceil_log2(elements.count()) / levels);
    const std::int64_t chunks = elements.count() >> power;
    const Elements rest = elements.part(chunks << power, elements.count() - (chunks << power));
    // Level 1 holds the chunks since it was last emptied, level 2 the full groups of them; the
    // highest level is never emptied.
    const auto emptied = [&](int level) {
      const std::int64_t sums = chunks >> ((level - 1) * power);
      return level + 1 < levels ? (sums >> power) << power : std::int64_t{0};
    };
    const auto held = [&](int level) { return (chunks >> ((level - 1) * power)) - emptied(level); };
    const auto level_sum = [&](int level) {
      return sums_of(elements, power, level - 1, emptied(level), held(level));
    };
    int level = 1;
    if (rest.count() == 0) {
      while (held(level) == 0) ++level;
    }
    Value total = rest.count() > 0 ? add_elements(ops_.zero(), rest) : level_sum(level++);
    for (; level < levels; ++level) {
      if (held(level) > 0) total = ops_.add(total, level_sum(level));
    }
    return total;
  }

  /// `count` sums of `level` (0: chunks of 2^power elements; each level holds 2^power of the one
  /// below) from the `first`-th on, added in sequence.
  Value sums_of(const Elements& elements, int power, int level, std::int64_t first,
                std::int64_t count) {
    const auto sum_of = [&](std::int64_t i) {
      if (level > 0)
        return sums_of(elements, power, level - 1, i << power, std::int64_t{1} << power);
      return add_elements(ops_.zero(), elements.part(i << power, std::int64_t{1} << power));
    };
    Value total = sum_of(first);
    for (std::int64_t i = 1; i < count; ++i) total = ops_.add(total, sum_of(first + i));
    return total;
  }

  Ops& ops_;
  std::int64_t width_;
  bool paired_;
};

/// PyTorch's dot product of 16-bit numbers in float32 on a CPU (ATen
/// `cpu/ReducedPrecisionFloatGemvFastPathKernel.cpp`): 8 accumulators of W lanes from +0 over the
/// largest multiple of 8 W terms, lane i of all joined with i + half their number; then vectors of
/// W terms over the largest multiple of 2 W terms of the rest, in one accumulator from +0, joined
/// in the same way and added; then the left-over terms one by one. `range` has one or more terms.
template <class Ops>
class TorchDot {
 public:
  using Value = typename Ops::Value;

  TorchDot(Ops& ops, std::int64_t width) : ops_(ops), width_(width) {}

  Value sum(const OrderRange& range) {
    const std::int64_t body = range.count - range.count % (accumulators * width_);
    const std::int64_t vectors = (range.count - body) / (2 * width_) * (2 * width_);
    const OrderRange tail = range.part(body + vectors, range.count - body - vectors);
    Value total = joined(range.part(0, body), accumulators * width_);
    if (vectors > 0) {
      const Value rest = joined(range.part(body, vectors), width_);
      total = body > 0 ? ops_.add(total, rest) : rest;
    }
    return add_terms(ops_, total, tail);
  }

 private:
  static constexpr std::int64_t accumulators = 8;

  struct Lanes {
    static constexpr bool are_terms = false;
    Ops& ops;
    OrderRange terms;
    std::int64_t lanes;

    Value value(std::int64_t i) const {
      return sequential(ops, terms.every(i, lanes, terms.count / lanes), true);
    }
    Value add(const Value& left, const Value& right) const { return ops.add(left, right); }
  };

  /// A multiple of `lanes` terms in that many lanes; +0 of none.
  Value joined(const OrderRange& terms, std::int64_t lanes) {
    if (terms.count == 0) return ops_.zero();
    return join_halving(Lanes{ops_, terms, lanes}, lanes);
  }

  Ops& ops_;
  std::int64_t width_;
};

}  // namespace kvsim::order_walk
