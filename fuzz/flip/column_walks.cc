// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see sim/engine/column_kernel.cc.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuzz/flip/column_walks.cc"
#include "fuzz/flip/column_walks.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kvsim::fuzz {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

HWY_INLINE V widened(const float* from) {
  return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<float, D>(), from));
}

/// The power of two of the exponent of x; 0 for 0.
HWY_INLINE V power_of(V x) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(D(), hn::And(hn::BitCast(bits, x), hn::Set(bits, 0x7ff0000000000000U)));
}

/// A double-double in each lane.
struct LongSum {
  V high, low;
};

/// DoubleDouble + double of sim/double_double.h, operation by operation.
HWY_INLINE void add(LongSum& sum, V x) {
  const V s = hn::Add(sum.high, x);
  const V a_part = hn::Sub(s, x);
  const V b_part = hn::Sub(s, a_part);
  const V rest = hn::Add(sum.low, hn::Add(hn::Sub(sum.high, a_part), hn::Sub(x, b_part)));
  sum.high = hn::Add(s, rest);
  sum.low = hn::Sub(rest, hn::Sub(sum.high, s));
}

/// Vectors of columns that advance together, since the additions of a column wait for each other.
constexpr std::size_t together = 4;

void add_long_products_here(std::span<const double> a, const ColumnMatrix& b, double* high,
                            double* low) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t j = 0; j < b.stride(); j += together * lanes) {
    LongSum sums[together];
    for (std::size_t i = 0; i < together; ++i) {
      sums[i] = {hn::LoadU(d, high + j + i * lanes), hn::LoadU(d, low + j + i * lanes)};
    }
    for (std::size_t k = 0; k < a.size(); ++k) {
      const V factor = hn::Set(d, a[k]);
      const float* const row = b.row(k) + j;
      for (std::size_t i = 0; i < together; ++i) {
        add(sums[i], hn::Mul(factor, widened(row + i * lanes)));
      }
    }
    for (std::size_t i = 0; i < together; ++i) {
      hn::StoreU(sums[i].high, d, high + j + i * lanes);
      hn::StoreU(sums[i].low, d, low + j + i * lanes);
    }
  }
}

void add_magnitudes_here(std::span<const double> a, const ColumnMatrix& b, double* sums) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t j = 0; j < b.stride(); j += together * lanes) {
    V sum[together];
    for (std::size_t i = 0; i < together; ++i) sum[i] = hn::LoadU(d, sums + j + i * lanes);
    for (std::size_t k = 0; k < a.size(); ++k) {
      const V factor = hn::Set(d, a[k]);
      const float* const row = b.row(k) + j;
      for (std::size_t i = 0; i < together; ++i) {
        sum[i] = hn::Add(sum[i], hn::Mul(factor, hn::Abs(widened(row + i * lanes))));
      }
    }
    for (std::size_t i = 0; i < together; ++i) hn::StoreU(sum[i], d, sums + j + i * lanes);
  }
}

/// One vector of columns through all blocks: running_bound() of sim/predict/running_bound.h says
/// what is lost where.
struct ChainLanes {
  V partial, slack, bound;

  void rescale(const WalkRescaling& by) {
    const D d;
    const V factor = hn::Set(d, by.factor);
    partial = hn::Mul(partial, factor);
    slack = hn::Mul(slack, factor);
    bound = hn::Mul(bound, factor);
    const V error = hn::Mul(hn::Set(d, by.error), magnitude());
    bound = hn::Add(bound, hn::Max(error, hn::Set(d, by.quantum)));
  }

  HWY_INLINE V magnitude() const { return hn::Add(hn::Add(hn::Abs(partial), slack), bound); }

  void add_block(const UnitErrors& unit, std::span<const WalkFactor> factors, const float* b,
                 std::size_t stride, const WalkFormat& format) {
    const D d;
    const V smallest = hn::Set(d, format.smallest_normal);
    const V before = magnitude();
    const V surely = hn::Sub(hn::Abs(partial), hn::Add(slack, bound));
    const bool known = format.exponents_known;
    V largest = hn::Max(known ? power_of(before) : before, hn::Set(d, unit.floor));
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const WalkFactor& factor = factors[k];
      const V x = widened(b + k * stride);
      partial = hn::Add(partial, hn::Mul(hn::Set(d, factor.value), x));
      slack = hn::Add(slack, hn::Mul(hn::Set(d, factor.deviation), hn::Abs(x)));
      const V alignment = hn::Mul(hn::Set(d, factor.alignment), hn::Max(power_of(x), smallest));
      largest = hn::Max(largest, alignment);
    }
    if (unit.is_truncating) {
      const V cut = hn::Mul(hn::Set(d, unit.cut), largest);
      V lost = hn::Mul(cut, hn::Set(d, static_cast<double>(unit.cuts_beside_products - 1)));
      // The addend's own ulp is coarser than what is cut where it is that large.
      const V kept = hn::Mul(cut, hn::Set(d, unit.addend_ulps));
      const V addend = unit.addend_rounds_down ? cut : hn::Min(before, cut);
      lost = hn::Add(lost, hn::IfThenZeroElse(hn::Ge(surely, kept), addend));
      for (std::size_t k = 0; k < factors.size(); ++k) {
        const WalkFactor& factor = factors[k];
        const V x = widened(b + k * stride);
        const V ulp =
            hn::Mul(hn::Set(d, factor.quantum * format.ulp_of_one), hn::Max(power_of(x), smallest));
        const V most = hn::Mul(hn::Set(d, std::abs(factor.value) + factor.deviation), hn::Abs(x));
        lost = hn::Add(lost, hn::IfThenElseZero(hn::Lt(ulp, cut), hn::Min(most, cut)));
      }
      bound = hn::Add(bound, lost);
      bound = hn::Add(bound, hn::Mul(hn::Set(d, unit.sum_cut), largest));
      const V total = hn::Max(magnitude(), hn::Set(d, unit.floor));
      bound = hn::Add(bound, hn::Mul(hn::Set(d, unit.final_cut), total));
    }
    const V result = known ? power_of(magnitude()) : magnitude();
    const V converted = hn::Mul(hn::Set(d, unit.conversion), result);
    bound = hn::Add(bound, hn::Max(converted, hn::Set(d, unit.quantum)));
  }
};

void walk_unit_chain_here(const UnitErrors& unit, std::span<const WalkFactor> factors,
                          const ColumnMatrix& b, std::size_t first, const WalkFormat& format,
                          const WalkRescaling& rescaling, UnitChain& chain) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t j = 0; j < b.stride(); j += lanes) {
    ChainLanes state{hn::LoadU(d, chain.partial.data() + j), hn::LoadU(d, chain.slack.data() + j),
                     hn::LoadU(d, chain.bound.data() + j)};
    state.rescale(rescaling);
    for (std::size_t k = 0; k < factors.size(); k += unit.fan_in) {
      const std::size_t count = std::min(unit.fan_in, factors.size() - k);
      state.add_block(unit, factors.subspan(k, count), b.row(first + k) + j, b.stride(), format);
    }
    hn::StoreU(state.partial, d, chain.partial.data() + j);
    hn::StoreU(state.slack, d, chain.slack.data() + j);
    hn::StoreU(state.bound, d, chain.bound.data() + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::fuzz
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::fuzz {
ColumnMatrix::ColumnMatrix(std::span<const float> values, std::size_t rows, std::size_t columns,
                           bool transposed)
    : rows_(rows), columns_(columns) {
  constexpr std::size_t multiple = 32;  // of `together` vectors at every level
  stride_ = (columns + multiple - 1) / multiple * multiple;
  values_.resize(rows * stride_);
  for (std::size_t i = 0; i < rows; ++i) {
    if (!transposed) {
      std::copy_n(values.data() + i * columns, columns, values_.data() + i * stride_);
      continue;
    }
    for (std::size_t j = 0; j < columns; ++j) values_[i * stride_ + j] = values[j * rows + i];
  }
}

void add_long_products(std::span<const double> a, const ColumnMatrix& b, std::span<double> high,
                       std::span<double> low, SimdLevel level) {
  constexpr engine::LevelFunctions<decltype(&N_SCALAR::add_long_products_here)> functions
      KVSIM_AT_EACH_LEVEL(add_long_products_here);
  engine::function_or_scalar(level, functions)(a, b, high.data(), low.data());
}

void add_magnitudes(std::span<const double> a, const ColumnMatrix& b, std::span<double> sums,
                    SimdLevel level) {
  constexpr engine::LevelFunctions<decltype(&N_SCALAR::add_magnitudes_here)> functions
      KVSIM_AT_EACH_LEVEL(add_magnitudes_here);
  engine::function_or_scalar(level, functions)(a, b, sums.data());
}

void walk_unit_chain(const UnitErrors& unit, std::span<const WalkFactor> factors,
                     const ColumnMatrix& b, std::size_t first, const WalkFormat& format,
                     const WalkRescaling& rescaling, UnitChain& chain, SimdLevel level) {
  constexpr engine::LevelFunctions<decltype(&N_SCALAR::walk_unit_chain_here)> functions
      KVSIM_AT_EACH_LEVEL(walk_unit_chain_here);
  engine::function_or_scalar(level, functions)(unit, factors, b, first, format, rescaling, chain);
}

}  // namespace kvsim::fuzz
#endif  // HWY_ONCE
