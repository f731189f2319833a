// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// One block of T-FDPA, a column of b in each lane. Compiled once per instruction set: the guard
// flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_CELL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_CELL_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_CELL_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_CELL_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_exponents-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// What all blocks of a tile have in common.
struct BlockConstants {
  IntVector least;          ///< the least largest exponent, biased and in place
  IntVector scale_base;     ///< minus the largest exponent: the scale 2^(F − e)
  IntVector raised_base;    ///< minus the largest exponent: F − e + UnitPlan::a_scale, in place
  IntVector fraction_bits;  ///< F in place
  std::uint64_t cut;        ///< the bits of a double that truncation drops
  std::uint64_t down_cut;   ///< the bits of a double below 32: what TR-FDPA rounds down at last
  IntVector dropped;        ///< the bits of a float that it drops
  FloatLanes<RoundBinary16> half;
  bool fits;

  explicit HWY_INLINE BlockConstants(const UnitPlan& plan, const LanePlan& half_plan)
      : least(hn::Set(IntTag(), exponent_field(plan.least_exponent + bias))),
        scale_base(hn::Set(IntTag(), exponent_field(2 * bias + plan.fraction_bits))),
        raised_base(hn::Set(IntTag(), exponent_field(bias + plan.fraction_bits + plan.a_scale))),
        fraction_bits(hn::Set(IntTag(), exponent_field(plan.fraction_bits))),
        cut((std::uint64_t{1} << (53 - plan.kept_bits)) - 1),
        down_cut(plan.final_rounding_down ? (std::uint64_t{1} << 21) - 1 : 0),
        dropped(hn::Set(IntTag(), (1 << (24 - plan.kept_bits)) - 1)),
        half(half_plan),
        fits(plan.fits_int32) {}
};

/// One vector of elements while a block is added to it.
template <BlockKind kKind>
struct Cell {
  FloatVector c;
  FloatVector scale;     ///< 2^(F − e_max)
  IntVector raise;       ///< narrow: what the exponent of a scaled product grows by, in place
  FloatVector inverse;   ///< 2^(e_max − F)
  IntVector sum;         ///< of the products, in units of `inverse`
  IntVector rest;        ///< the addend, and products that `sum` has no room for
  FloatVector doubtful;  ///< wide: all bits set where lanes do not know e_max

  HWY_INLINE Cell() {}

  KVSIM_INLINE void start(const BlockConstants& constants, const float* from, IntVector code,
                          bool has_tiny) {
    const FloatTag d;
    const IntTag di;
    c = hn::LoadU(d, from);
    IntVector addend = hn::And(hn::BitCast(di, c), hn::Set(di, exponent_mask));
    if constexpr (kKind == BlockKind::narrow_half) {
      // A subnormal of binary16 has its smallest exponent, a zero none.
      const IntVector normal = hn::Max(addend, hn::Set(di, exponent_field(-14 + bias)));
      addend = hn::IfThenZeroElse(hn::Eq(addend, hn::Zero(di)), normal);
    }
    const IntVector product = hn::Sub(code, hn::Set(di, exponent_field(product_code_shift)));
    const IntVector e = hn::Max(hn::Max(addend, constants.least), product);
    if constexpr (kKind == BlockKind::wide) {
      const auto below = hn::Lt(hn::Max(addend, product), constants.least);
      const auto any = hn::Gt(code, hn::Set(di, has_tiny ? -1 : 0));
      doubtful = hn::BitCast(d, hn::VecFromMask(di, hn::And(below, any)));
    }
    scale = hn::BitCast(d, hn::Sub(constants.scale_base, e));
    inverse = hn::BitCast(d, hn::Sub(e, constants.fraction_bits));
    rest = truncate(hn::Mul(c, scale));
    if constexpr (kKind != BlockKind::wide) raise = hn::Sub(constants.raised_base, e);
    sum = hn::Zero(di);
  }

  HWY_INLINE void spill() {
    rest = hn::Add(rest, sum);
    sum = hn::Zero(IntTag());
  }

  /// The product in units of `inverse`, still with a fraction. Where exponents are narrow an
  /// integer addition scales it, for which a CPU has more units than for another multiplication: a
  /// product is then 2^−a_scale times what it should be, so that the exponent of a zero becomes
  /// that of a number below 1 and no other exponent leaves its range.
  HWY_INLINE FloatVector scaled(FloatVector product) const {
    if constexpr (kKind == BlockKind::wide) return hn::Mul(product, scale);
    return hn::BitCast(FloatTag(), hn::Add(hn::BitCast(IntTag(), product), raise));
  }

  /// The sum as doubles, exact.
  HWY_INLINE DoubleVector lower_sum(bool fits, IntVector total) const {
    const DoubleTag dd;
    const hn::Rebind<std::int32_t, DoubleTag> half;
    if (fits) return hn::PromoteTo(dd, hn::LowerHalf(half, total));
    return hn::Add(hn::PromoteTo(dd, hn::LowerHalf(half, sum)),
                   hn::PromoteTo(dd, hn::LowerHalf(half, rest)));
  }
  HWY_INLINE DoubleVector upper_sum(bool fits, IntVector total) const {
    const DoubleTag dd;
    const hn::Rebind<std::int32_t, DoubleTag> half;
    if (fits) return hn::PromoteTo(dd, hn::UpperHalf(half, total));
    return hn::Add(hn::PromoteTo(dd, hn::UpperHalf(half, sum)),
                   hn::PromoteTo(dd, hn::UpperHalf(half, rest)));
  }

  /// To 24 bits or fewer: toward zero, or to odd where another rounding follows.
  static HWY_INLINE hn::Vec<HalfFloatTag> cut(DoubleVector x, std::uint64_t dropped) {
    const DoubleTag dd;
    const hn::RebindToUnsigned<DoubleTag> du;
    auto code = hn::BitCast(du, x);
    const auto mask = hn::Set(du, dropped);
    if constexpr (kKind == BlockKind::narrow_half) {
      code = hn::Or(code, hn::Add(hn::And(code, mask), mask));
    }
    return hn::DemoteTo(HalfFloatTag(), hn::BitCast(dd, hn::AndNot(mask, code)));
  }

  /// The sum of the block in units of `inverse`, converted as `cut` does.
  HWY_INLINE FloatVector converted(const BlockConstants& constants) const {
    const FloatTag d;
    const IntVector total = hn::Add(sum, rest);
#if HWY_TARGET == HWY_AVX3
    const IntTag di;
    // Overflow of the addition flips the sign against both numbers.
    const IntVector flips = hn::And(hn::Xor(sum, total), hn::Xor(rest, total));
    if (HWY_LIKELY(constants.fits || hn::AllFalse(di, hn::Lt(flips, hn::Zero(di))))) {
      FloatVector result{
          _mm512_cvt_roundepi32_ps(total.raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
      if constexpr (kKind == BlockKind::narrow_half) {
        const auto inexact = hn::Ne(truncate(result), total);
        const IntVector last = hn::IfThenElseZero(inexact, hn::Set(di, 1));
        return hn::Or(result, hn::BitCast(d, last));
      }
      return hn::AndNot(hn::BitCast(d, constants.dropped), result);
    }
#endif
    return hn::Combine(d, cut(upper_sum(constants.fits, total), constants.cut),
                       cut(lower_sum(constants.fits, total), constants.cut));
  }

  KVSIM_INLINE void finish(const BlockConstants& constants, float* to) {
    const FloatTag d;
    FloatVector result = converted(constants);
    result = hn::Mul(result, inverse);
    if constexpr (kKind == BlockKind::narrow_half) {
      const IntTag di;
      result = constants.half.round(result);
      const IntVector code = hn::BitCast(di, c);
      const IntVector magnitude = hn::And(code, hn::Set(di, magnitude_mask));
      const auto special = hn::Gt(magnitude, hn::Set(di, exponent_field(255) - 1));
      result = hn::IfThenElse(hn::RebindMask(d, special), c, result);
      // −0 stays only where all products are −0: softfloat looks at them.
      const auto negative_zero = hn::And(hn::RebindMask(d, hn::Eq(code, hn::Set(di, sign_mask))),
                                         hn::Eq(result, hn::Zero(d)));
      result = hn::Or(result, hn::VecFromMask(d, negative_zero));
    }
    if constexpr (kKind == BlockKind::wide) {
      result = hn::Or(hn::IfThenElse(hn::IsNaN(c), c, result), doubtful);
    }
    hn::StoreU(result, d, to);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
