// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Arithmetic on lanes with an explicit rounding after each operation. Compiled once per instruction
// set: the guard flips, as Highway's foreach_target.h asks.
#if defined(KVSIM_SIM_ENGINE_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_LANES_INL_H
#undef KVSIM_SIM_ENGINE_LANES_INL_H
#else
#define KVSIM_SIM_ENGINE_LANES_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "sim/engine/lane_plan.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
using DoubleTag = hn::ScalableTag<double>;
using DoubleVector = hn::Vec<DoubleTag>;
using HalfFloatTag = hn::Rebind<float, DoubleTag>;  // as many floats as a vector holds doubles

/// binary32: the lanes round by themselves.
struct RoundBinary32 {
  explicit RoundBinary32(const LanePlan&) {}
  HWY_INLINE FloatVector operator()(FloatVector x) const { return x; }
};

/// Formats that are binary32 with a shorter significand: the code is rounded as an integer. The
/// carry runs into the exponent, from the subnormals into the normal numbers and from the largest
/// number into infinity, as it should.
struct RoundTruncated {
  explicit RoundTruncated(const LanePlan& plan) : discarded(plan.discarded_bits) {}
  HWY_INLINE FloatVector operator()(FloatVector x) const {
    const hn::RebindToUnsigned<FloatTag> du;
    const FloatTag d;
    const auto code = hn::BitCast(du, x);
    const auto last = hn::And(hn::ShiftRightSame(code, discarded), hn::Set(du, 1U));
    const auto below_half = hn::Set(du, (1U << (discarded - 1)) - 1);
    const auto sum = hn::Add(code, hn::Add(below_half, last));
    const auto kept = hn::And(sum, hn::Set(du, ~((1U << discarded) - 1)));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::BitCast(d, kept));  // the carry could destroy a NaN
  }
  int discarded;
};

/// Any format, in lanes whose precision P and exponent range are larger than its own: adding and
/// then subtracting 2^(e + P − p), where e is the exponent of x but at least emin, leaves x rounded
/// to a multiple of 2^(e − p + 1), ties to even, because that is the spacing of lanes at that power
/// of two.
template <class D>
struct RoundNarrow {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;

  explicit RoundNarrow(const LanePlan& plan)
      : smallest_normal(static_cast<T>(plan.smallest_normal)),
        largest_finite(static_cast<T>(plan.largest_finite)),
        overflow_result(static_cast<T>(plan.overflow_result)),
        nan_result(static_cast<T>(plan.nan_result)),
        shift(static_cast<T>(plan.shift)),
        clears_negative_zero(plan.clears_negative_zero),
        has_nan(plan.nan_result != plan.nan_result) {}

  HWY_INLINE V operator()(V x) const {
    const D d;
    const hn::RebindToUnsigned<D> du;
    // Larger magnitudes overflow whatever the spacing; the cap keeps the sum below finite.
    const V cap = hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 0x1p+64 : 0x1p+300));
    const V magnitude = hn::Abs(x);
    const V exponent_mask =
        hn::BitCast(d, hn::Set(du, static_cast<hn::TFromD<decltype(du)>>(
                                       sizeof(T) == 4 ? 0x7f800000ULL : 0x7ff0000000000000ULL)));
    V power = hn::And(magnitude, exponent_mask);
    power = hn::Min(hn::Max(power, hn::Set(d, smallest_normal)), cap);
    const V offset = hn::Mul(power, hn::Set(d, shift));
    V rounded = hn::Sub(hn::Add(magnitude, offset), offset);
    rounded = hn::IfThenElse(hn::Gt(rounded, hn::Set(d, largest_finite)),
                             hn::Set(d, overflow_result), rounded);
    V result = hn::Or(rounded, hn::And(x, hn::SignBit(d)));
    if (!has_nan) result = hn::IfThenElse(hn::IsNaN(x), hn::Set(d, nan_result), result);
    if (clears_negative_zero) result = hn::Add(result, hn::Zero(d));  // −0 + 0 = +0
    return result;
  }

  T smallest_normal, largest_finite, overflow_result, nan_result, shift;
  bool clears_negative_zero, has_nan;
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
/// binary16 by the CPU's own conversions: they round to nearest even whatever MXCSR says, and keep
/// subnormals.
struct RoundBinary16 {
  explicit RoundBinary16(const LanePlan&) {}
  HWY_INLINE FloatVector operator()(FloatVector x) const {
    const FloatTag d;
    const hn::Rebind<hwy::float16_t, FloatTag> dh;
    return hn::PromoteTo(d, hn::DemoteTo(dh, x));
  }
};
#else
using RoundBinary16 = RoundNarrow<FloatTag>;
#endif

/// Float lanes.
template <class Rounder>
struct FloatLanes {
  using D = FloatTag;
  using T = float;
  using V = FloatVector;

  explicit FloatLanes(const LanePlan& plan) : round(plan) {}

  static HWY_INLINE V load(const float* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE V broadcast(float value) { return hn::Set(D(), value); }
  static HWY_INLINE void store(V x, float* to) { hn::StoreU(x, D(), to); }

  HWY_INLINE V product(V a, V b) const { return round(hn::Mul(a, b)); }
  HWY_INLINE V add(V x, V y) const { return round(hn::Add(x, y)); }
  /// a × b + x with one rounding; only where the lanes' own rounding is the format's.
  HWY_INLINE V fused(V x, V a, V b) const {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    return hn::MulAdd(a, b, x);
#else
    float xs[most_lanes], as[most_lanes], bs[most_lanes];
    hn::StoreU(x, D(), xs);
    hn::StoreU(a, D(), as);
    hn::StoreU(b, D(), bs);
    for (std::size_t i = 0; i < hn::Lanes(D()); ++i) xs[i] = std::fma(as[i], bs[i], xs[i]);
    return hn::LoadU(D(), xs);
#endif
  }

  Rounder round;
};

/// Double lanes for formats whose sums and products float lanes would round twice. A product of two
/// floats is exact in a double; a sum is rounded to odd, after which rounding to p ≤ 51 bits gives
/// the same as rounding the exact sum.
struct WideLanes {
  using D = DoubleTag;
  using T = double;
  using V = DoubleVector;

  explicit WideLanes(const LanePlan& plan) : round(plan) {}

  static HWY_INLINE V load(const float* from) {
    return hn::PromoteTo(D(), hn::LoadU(HalfFloatTag(), from));
  }
  static HWY_INLINE V broadcast(float value) { return hn::Set(D(), static_cast<double>(value)); }
  static HWY_INLINE void store(V x, float* to) {
#if HWY_TARGET == HWY_SCALAR
    *to = static_cast<float>(hn::GetLane(x));  // Highway's own makes infinity the largest float
#else
    hn::StoreU(hn::DemoteTo(HalfFloatTag(), x), HalfFloatTag(), to);
#endif
  }

  HWY_INLINE V product(V a, V b) const { return round(hn::Mul(a, b)); }
  HWY_INLINE V add(V x, V y) const { return round(add_to_odd(x, y)); }
  HWY_INLINE V fused(V x, V a, V b) const { return round(add_to_odd(x, hn::Mul(a, b))); }

  /// x + y rounded to odd: where the sum is inexact (Knuth's two-sum tells by how much), it is cut
  /// toward zero and its last bit is set.
  static HWY_INLINE V add_to_odd(V x, V y) {
    const D d;
    const hn::RebindToUnsigned<D> du;
    const V sum = hn::Add(x, y);
    const V y_part = hn::Sub(sum, x);
    const V error = hn::Add(hn::Sub(x, hn::Sub(sum, y_part)), hn::Sub(y, y_part));
    // NaN where the sum is not finite; then the comparison is false and the sum stays.
    const auto inexact = hn::Gt(hn::Abs(error), hn::Zero(d));
    const auto code = hn::BitCast(du, sum);
    const auto one = hn::Set(du, 1U);
    // The neighbour on the side of the exact sum: code − 1 where the error points to zero.
    const auto toward_zero = hn::ShiftRight<63>(hn::BitCast(du, hn::Xor(error, sum)));
    const auto cut = hn::Sub(code, toward_zero);
    return hn::IfThenElse(inexact, hn::BitCast(d, hn::Or(cut, one)), sum);
  }

  RoundNarrow<DoubleTag> round;
};

/// Sum of the magnitudes of rounded results, in double, lane by lane. Constructors are written out
/// wherever vectors are members: implicit ones would not carry the instruction set.
template <class T>
struct Magnitudes;

template <>
struct Magnitudes<double> {
  DoubleVector sum;
  HWY_INLINE Magnitudes() : sum(hn::Zero(DoubleTag())) {}
  HWY_INLINE void note(DoubleVector magnitude, double saturation) {
    const DoubleTag d;
    const auto lost = hn::Ge(magnitude, hn::Set(d, saturation));
    sum = hn::Add(sum, hn::IfThenElse(lost, hn::Set(d, HUGE_VAL), magnitude));
  }
  HWY_INLINE void add(const double* more) { sum = hn::Add(sum, hn::LoadU(DoubleTag(), more)); }
  HWY_INLINE void store(double* to) const { hn::StoreU(sum, DoubleTag(), to); }
};

#if HWY_TARGET == HWY_SCALAR
template <>
struct Magnitudes<float> {  // one lane: a vector has no halves
  Magnitudes<double> wide;
  HWY_INLINE Magnitudes() {}
  HWY_INLINE void note(FloatVector magnitude, double saturation) {
    wide.note(hn::PromoteTo(DoubleTag(), magnitude), saturation);
  }
  HWY_INLINE void add(const double* more) { wide.add(more); }
  HWY_INLINE void store(double* to) const { wide.store(to); }
};
#else
template <>
struct Magnitudes<float> {
  DoubleVector lower;
  DoubleVector upper;
  HWY_INLINE Magnitudes() : lower(hn::Zero(DoubleTag())), upper(hn::Zero(DoubleTag())) {}
  HWY_INLINE void note(FloatVector magnitude, double saturation) {
    const FloatTag d;
    const DoubleTag dd;
    const HalfFloatTag dh;
    const auto lost = hn::Ge(magnitude, hn::Set(d, static_cast<float>(saturation)));
    const auto safe = hn::IfThenElse(lost, hn::Set(d, HUGE_VALF), magnitude);
    lower = hn::Add(lower, hn::PromoteTo(dd, hn::LowerHalf(dh, safe)));
    upper = hn::Add(upper, hn::PromoteTo(dd, hn::UpperHalf(dh, safe)));
  }
  HWY_INLINE void add(const double* more) {
    const DoubleTag dd;
    lower = hn::Add(lower, hn::LoadU(dd, more));
    upper = hn::Add(upper, hn::LoadU(dd, more + hn::Lanes(dd)));
  }
  HWY_INLINE void store(double* to) const {
    hn::StoreU(lower, DoubleTag(), to);
    hn::StoreU(upper, DoubleTag(), to + hn::Lanes(DoubleTag()));
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#endif
