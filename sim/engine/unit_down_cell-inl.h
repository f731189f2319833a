// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// One block of TR-FDPA, a column of b in each lane. Compiled once per instruction set: the guard
// flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_DOWN_CELL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_DOWN_CELL_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_DOWN_CELL_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_DOWN_CELL_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_cell-inl.h"
#include "sim/engine/unit_exponents-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// One vector of elements while a block of TR-FDPA is added to it: products are truncated below
/// their own largest exponent e_dot; with e the larger of that and the addend's, their sum is
/// rounded down to a multiple of 2^(e − 32) and the addend to one of 2^(e − 24); the total is
/// rounded down to 32 bits and then to nearest. F is 24 and F2 is 31.
template <BlockKind kKind>
struct DownCell {
  FloatVector c;
  FloatVector scale;     ///< wide: 2^(24 − e_dot)
  IntVector raise;       ///< narrow: what the exponent of a scaled product grows by, in place
  IntVector sum;         ///< of the products, in units of 2^(e_dot − 24)
  FloatVector lowered;   ///< 2^(e_dot − e + 8): a unit of `sum` in units of 2^(e − 32)
  FloatVector inverse;   ///< 2^(e − 32)
  FloatVector addend;    ///< c rounded down, in units of 2^(e − 32)
  FloatVector doubtful;  ///< wide: all bits set where lanes do not know e_dot

  HWY_INLINE DownCell() {}

  KVSIM_INLINE void start(const BlockConstants& constants, const float* from, IntVector code,
                          bool has_tiny) {
    const FloatTag d;
    const IntTag di;
    c = hn::LoadU(d, from);
    const IntVector c_exponent = hn::And(hn::BitCast(di, c), hn::Set(di, exponent_mask));
    const IntVector product = hn::Sub(code, hn::Set(di, exponent_field(product_code_shift)));
    const IntVector e_dot = hn::Max(product, constants.least);
    const IntVector e = hn::Max(c_exponent, e_dot);
    if constexpr (has_wide_exponents(kKind)) {
      const auto below = hn::Lt(product, constants.least);
      const auto any = hn::Gt(code, hn::Set(di, has_tiny ? -1 : 0));
      const auto small =
          hn::And(hn::Lt(c_exponent, constants.least), hn::RebindMask(di, hn::Ne(c, hn::Zero(d))));
      doubtful = hn::BitCast(d, hn::VecFromMask(di, hn::And(below, hn::Or(any, small))));
      scale = hn::BitCast(d, hn::Sub(constants.scale_base, e_dot));
    } else {
      raise = hn::Sub(constants.raised_base, e_dot);
    }
    // Below 2^−60 a sum is less than one unit, whatever its exponent.
    const IntVector shift = hn::Max(hn::Sub(e_dot, e), hn::Set(di, -exponent_field(60)));
    lowered = hn::BitCast(d, hn::Add(shift, hn::Set(di, exponent_field(8 + bias))));
    inverse = hn::BitCast(d, hn::Sub(e, hn::Set(di, exponent_field(32))));
    const FloatVector scaled = hn::Mul(c, hn::BitCast(d, hn::Sub(constants.scale_base, e)));
    // A negative addend that underflows is still rounded down to −1.
    const FloatVector kept =
        hn::IfThenElse(hn::Lt(c, hn::Zero(d)), hn::Min(scaled, hn::Set(d, -0x1p-100F)), scaled);
    addend = hn::Mul(hn::Floor(kept), hn::Set(d, 0x1p8F));
    sum = hn::Zero(di);
  }

  HWY_INLINE void spill() {}

  /// As Cell::scaled().
  HWY_INLINE FloatVector scaled(FloatVector product) const {
    if constexpr (has_wide_exponents(kKind)) return hn::Mul(product, scale);
    return hn::BitCast(FloatTag(), hn::Add(hn::BitCast(IntTag(), product), raise));
  }

  KVSIM_INLINE void finish(const BlockConstants& constants, float* to) {
    const FloatTag d;
    const IntTag di;
    const DoubleTag dd;
    const hn::Rebind<std::int32_t, DoubleTag> half_int;
    const HalfFloatTag half;
    const auto low = total(hn::PromoteTo(dd, hn::LowerHalf(half_int, sum)),
                           hn::PromoteTo(dd, hn::LowerHalf(half, lowered)),
                           hn::PromoteTo(dd, hn::LowerHalf(half, addend)), constants.down_cut);
    const auto high = total(hn::PromoteTo(dd, hn::UpperHalf(half_int, sum)),
                            hn::PromoteTo(dd, hn::UpperHalf(half, lowered)),
                            hn::PromoteTo(dd, hn::UpperHalf(half, addend)), constants.down_cut);
    FloatVector result =
        hn::Mul(hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low)), inverse);
    if constexpr (has_wide_exponents(kKind)) {
      result = hn::Or(hn::IfThenElse(hn::IsNaN(c), c, result), doubtful);
    }
    static_cast<void>(di);
    hn::StoreU(result, d, to);
  }

 private:
  /// The sum and the addend in units of 2^(e − 32), fewer than 2^40; rounded down to 32 bits.
  static HWY_INLINE DoubleVector total(DoubleVector x, DoubleVector unit, DoubleVector y,
                                       std::uint64_t cut) {
    const DoubleTag dd;
    const hn::RebindToUnsigned<DoubleTag> du;
    const DoubleVector exact = hn::Add(hn::Floor(hn::Mul(x, unit)), y);
    const auto mask = hn::Set(du, cut);
    const auto negative = hn::BitCast(du, hn::VecFromMask(dd, hn::Lt(exact, hn::Zero(dd))));
    // Down is away from zero for a negative number.
    const auto raised = hn::Add(hn::BitCast(du, exact), hn::And(mask, negative));
    return hn::BitCast(dd, hn::AndNot(mask, raised));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
