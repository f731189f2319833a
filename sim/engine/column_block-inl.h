// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Partial sums of one or more vectors of columns. Compiled once per instruction set: the guard
// flips.
#if defined(KVSIM_SIM_ENGINE_COLUMN_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_COLUMN_BLOCK_INL_H
#undef KVSIM_SIM_ENGINE_COLUMN_BLOCK_INL_H
#else
#define KVSIM_SIM_ENGINE_COLUMN_BLOCK_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "sim/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// Lanes of one vector.
template <class L>
HWY_INLINE std::size_t lanes_of() {
  return hn::Lanes(typename L::D());
}

/// What the terms of one call have in common.
template <class L>
struct Terms {
  L lanes;
  float smallest_noted = 0;  ///< 2^emin where a result may be an inexact subnormal, otherwise 0
  bool notes_products = false;
  double saturation = 0;

  explicit Terms(const LanePlan& plan)
      : lanes(plan),
        smallest_noted(plan.product_is_exact ? 0.0F : static_cast<float>(plan.smallest_normal)),
        notes_products(!plan.product_is_exact),
        saturation(plan.saturation) {}
};

/// One vector of partial sums, and the magnitudes of its rounded results where they are wanted.
template <class L, Product P, bool kNote>
struct Vector {
  using V = typename L::V;
  V sum;

  HWY_INLINE Vector() : sum(hn::Zero(typename L::D())) {}

  HWY_INLINE void start(const Terms<L>& t, V a, const float* b, Magnitudes<typename L::T>& noted) {
    const V factor = L::load(b);
    if constexpr (P == Product::rounded) {
      sum = t.lanes.product(a, factor);
      note_product(t, sum, noted);
    } else if constexpr (P == Product::fused) {
      sum = t.lanes.fused(hn::Zero(typename L::D()), a, factor);
      note_inexact(t, sum, noted);
    } else {
      sum = hn::Mul(a, factor);  // rounded by the addition that follows, or at the end
    }
  }

  HWY_INLINE void add_term(const Terms<L>& t, V a, const float* b,
                           Magnitudes<typename L::T>& noted) {
    const V factor = L::load(b);
    if constexpr (P == Product::rounded) {
      const V product = t.lanes.product(a, factor);
      note_product(t, product, noted);
      sum = t.lanes.add(sum, product);
      note_sum(t, sum, noted);
    } else {
      sum = t.lanes.fused(sum, a, factor);
      note_inexact(t, sum, noted);
    }
  }

  HWY_INLINE void join(const Terms<L>& t, V other, Magnitudes<typename L::T>& noted) {
    sum = t.lanes.add(sum, other);
    if constexpr (P == Product::exact) {
      note_inexact(t, sum, noted);
    } else {
      note_sum(t, sum, noted);
    }
  }

  HWY_INLINE void finish(const Terms<L>& t, Magnitudes<typename L::T>& noted) {
    if constexpr (P == Product::exact) {
      sum = t.lanes.round(sum);  // changes nothing but a single product
      note_inexact(t, sum, noted);
    }
  }

  /// A product that was rounded: in error by at most u × max(|x|, 2^emin).
  static HWY_INLINE void note_product(const Terms<L>& t, V x, Magnitudes<typename L::T>& noted) {
    if constexpr (kNote) {
      if (t.notes_products) note_inexact(t, x, noted);
    }
  }
  /// The rounded sum of two numbers of the format: exact where it is subnormal.
  static HWY_INLINE void note_sum(const Terms<L>& t, V x, Magnitudes<typename L::T>& noted) {
    if constexpr (kNote) noted.note(hn::Abs(x), t.saturation);
  }
  static HWY_INLINE void note_inexact(const Terms<L>& t, V x, Magnitudes<typename L::T>& noted) {
    if constexpr (kNote) {
      noted.note(hn::Max(hn::Abs(x), L::broadcast(t.smallest_noted)), t.saturation);
    }
  }
};

/// kVectors (a power of two) vectors side by side. Halving instead of an array keeps every vector
/// in a register of its own.
template <class L, Product P, bool kNote, std::size_t kVectors>
struct Block {
  using Half = Block<L, P, kNote, kVectors / 2>;
  using V = typename L::V;
  static HWY_INLINE std::size_t half_lanes() { return kVectors / 2 * lanes_of<L>(); }

  struct Noted {
    typename Half::Noted low, high;
    HWY_INLINE Noted() {}
    HWY_INLINE void store(double* to) const {
      low.store(to);
      high.store(to + half_lanes());
    }
    HWY_INLINE void add(const double* more) {
      low.add(more);
      high.add(more + half_lanes());
    }
  };
  Half low, high;

  HWY_INLINE Block() {}

  HWY_INLINE void start(const Terms<L>& t, V a, const float* b, Noted& noted) {
    low.start(t, a, b, noted.low);
    high.start(t, a, b + half_lanes(), noted.high);
  }
  HWY_INLINE void add_term(const Terms<L>& t, V a, const float* b, Noted& noted) {
    low.add_term(t, a, b, noted.low);
    high.add_term(t, a, b + half_lanes(), noted.high);
  }
  HWY_INLINE void join(const Terms<L>& t, const typename L::T* other, Noted& noted) {
    low.join(t, other, noted.low);
    high.join(t, other + half_lanes(), noted.high);
  }
  HWY_INLINE void finish(const Terms<L>& t, Noted& noted) {
    low.finish(t, noted.low);
    high.finish(t, noted.high);
  }
  HWY_INLINE void note_exact(const Terms<L>& t, Noted& noted) const {
    low.note_exact(t, noted.low);
    high.note_exact(t, noted.high);
  }
  HWY_INLINE void load_slot(const typename L::T* slot) {
    low.load_slot(slot);
    high.load_slot(slot + half_lanes());
  }
  HWY_INLINE void store_slot(typename L::T* slot) const {
    low.store_slot(slot);
    high.store_slot(slot + half_lanes());
  }
  HWY_INLINE void load(const float* from) {
    low.load(from);
    high.load(from + half_lanes());
  }
  HWY_INLINE void store(float* to) const {
    low.store(to);
    high.store(to + half_lanes());
  }
};

template <class L, Product P, bool kNote>
struct Block<L, P, kNote, 1> : Vector<L, P, kNote> {
  using Base = Vector<L, P, kNote>;
  using D = typename L::D;
  using Noted = Magnitudes<typename L::T>;

  HWY_INLINE Block() {}

  HWY_INLINE void join(const Terms<L>& t, const typename L::T* other, Noted& noted) {
    Base::join(t, hn::LoadU(D(), other), noted);
  }
  HWY_INLINE void note_exact(const Terms<L>& t, Noted& noted) const {
    // An exact sum of products may be an inexact subnormal even where single products are not; the
    // larger of the two notes is right for both.
    Base::note_inexact(t, this->sum, noted);
  }
  HWY_INLINE void load_slot(const typename L::T* slot) { this->sum = hn::LoadU(D(), slot); }
  HWY_INLINE void store_slot(typename L::T* slot) const { hn::StoreU(this->sum, D(), slot); }
  HWY_INLINE void load(const float* from) { this->sum = L::load(from); }
  HWY_INLINE void store(float* to) const { L::store(this->sum, to); }
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#endif
