// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Matrix units in lanes: what the paths share. Compiled once per instruction set: the guard flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_KERNEL_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_KERNEL_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_KERNEL_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_kernel.h"

#ifndef KVSIM_UNROLL
#ifdef KVSIM_SANITIZED
// Instrumented code that is unrolled and inlined takes half an hour to compile, and tests nothing
// that loops do not.
#define KVSIM_UNROLL(N)
#define KVSIM_INLINE HWY_NOINLINE
#else
#define KVSIM_PRAGMA(TEXT) _Pragma(#TEXT)
#define KVSIM_UNROLL(N) KVSIM_PRAGMA(GCC unroll N)  // clang takes it too
#define KVSIM_INLINE HWY_INLINE
#endif
#endif

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVector = hn::Vec<IntTag>;
using ByteTag = hn::Repartition<std::uint8_t, FloatTag>;
using ByteVector = hn::Vec<ByteTag>;

inline constexpr std::int32_t sign_mask = INT32_MIN;
inline constexpr std::int32_t magnitude_mask = INT32_MAX;
inline constexpr std::int32_t exponent_mask = 0x7f800000;
inline constexpr int bias = 127;

/// A biased exponent where a float has it.
constexpr std::int32_t exponent_field(int biased) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(biased) << 23);
}

HWY_INLINE std::size_t float_lanes() { return hn::Lanes(FloatTag()); }

/// Toward zero. Highway's ConvertTo also repairs what lies outside int32, with three instructions.
HWY_INLINE IntVector truncate(FloatVector x) {
#if HWY_TARGET == HWY_AVX3
  return IntVector{_mm512_cvttps_epi32(x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return IntVector{_mm256_cvttps_epi32(x.raw)};
#else
  return hn::ConvertTo(IntTag(), x);
#endif
}

/// A binary32 operand as the tf32 that the unit multiplies. Infinity stays, a NaN stays one.
HWY_INLINE FloatVector to_tf32(const UnitPlan& plan, FloatVector x) {
  const FloatTag d;
  const IntTag di;
  constexpr std::int32_t dropped = 0x1fff;
  IntVector code = hn::BitCast(di, x);
  if (plan.operand_rounding == OperandRounding::nearest_ties_away) {
    code = hn::Add(code, hn::Set(di, (dropped + 1) / 2));
  }
  const FloatVector kept = hn::BitCast(d, hn::And(code, hn::Set(di, ~dropped)));
  return hn::IfThenElse(hn::IsNaN(x), x, kept);
}

/// Biased exponents, in the lowest bits; that of a subnormal float is 0.
HWY_INLINE IntVector biased_exponents(FloatVector x) {
  const IntTag di;
  return hn::ShiftRight<23>(hn::And(hn::BitCast(di, x), hn::Set(di, exponent_mask)));
}

/// Zero of the same sign instead of a subnormal float.
HWY_INLINE FloatVector flushed(FloatVector x) {
  const FloatTag d;
  const auto subnormal = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-126F));
  return hn::IfThenElse(subnormal, hn::And(x, hn::SignBit(d)), x);
}

/// Packs one row of a; `from` has room for whole vectors.
inline std::uint8_t pack_row(const UnitPlan& plan, const float* from, std::int64_t count,
                             float* values, std::uint8_t* codes) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<std::uint8_t, IntTag> narrow;
  const IntVector least = hn::Set(di, plan.smallest_exponent + bias);
  const FloatVector scale =
      hn::BitCast(d, hn::Set(di, exponent_field(bias - plan.a_scale)));  // exact, as exponents go
  IntVector largest = hn::Zero(di);
  IntVector smallest = hn::Set(di, INT32_MAX);
  for (std::int64_t k = 0; k < count; k += static_cast<std::int64_t>(float_lanes())) {
    FloatVector x = hn::LoadU(d, from + k);
    if (plan.converts_operands) x = to_tf32(plan, x);
    if (plan.flushes_subnormals) x = flushed(x);
    hn::StoreU(hn::Mul(x, scale), d, values + k);
    const IntVector magnitude = hn::And(hn::BitCast(di, x), hn::Set(di, magnitude_mask));
    const auto zero = hn::Eq(magnitude, hn::Zero(di));
    largest = hn::Max(largest, magnitude);
    smallest = hn::Min(smallest, hn::IfThenElse(zero, hn::Set(di, INT32_MAX), magnitude));
    const IntVector exponent = biased_exponents(x);
    // A subnormal float counts as zero here: row_has_tiny_numbers says so.
    const IntVector code = hn::IfThenElse(
        hn::Eq(exponent, hn::Zero(di)), hn::Set(di, 255),
        hn::Sub(hn::Set(di, largest_lane_exponent + bias), hn::Max(exponent, least)));
    hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes + k);
  }
  const std::int32_t top = hn::GetLane(hn::MaxOfLanes(di, largest));
  const std::int32_t bottom = hn::GetLane(hn::MinOfLanes(di, smallest));
  if (top >= exponent_field(largest_lane_exponent + 1 + bias)) return row_is_for_softfloat;
  return bottom < exponent_field(bias + tiny_exponent) ? row_has_tiny_numbers : row_is_tame;
}

/// One vector of addends, 0 in place of those that are not for lanes.
HWY_INLINE FloatVector lane_addends(const LaneAddends& addends, FloatVector c, bool& odd) {
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, c);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffU));
  const auto above = hn::Sub(magnitude, hn::Set(du, addends.lowest));
  const auto inside = hn::Lt(above, hn::Set(du, addends.highest - addends.lowest));
  const auto zero = hn::Eq(addends.takes_negative_zero ? magnitude : bits, hn::Zero(du));
  const auto taken = hn::Or(inside, zero);
  odd |= !hn::AllTrue(du, taken);
  return hn::IfThenElseZero(hn::RebindMask(FloatTag(), taken), c);
}

inline bool load_addends(const AddendArguments& call) {
  const FloatTag d;
  const LaneAddends addends(*call.plan);
  const auto lanes = static_cast<std::int64_t>(float_lanes());
  bool odd = false;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const float* const c = call.c + i * call.c_stride;
    float* const to = call.sums + i * 4 * lanes;
    std::int64_t j = 0;
    for (; j + lanes <= call.columns; j += lanes) {
      hn::StoreU(lane_addends(addends, hn::LoadU(d, c + j), odd), d, to + j);
    }
    if (j == call.columns) continue;
    float rest[most_panel_columns] = {};
    std::copy(c + j, c + call.columns, rest);
    hn::StoreU(lane_addends(addends, hn::LoadU(d, rest), odd), d, to + j);
  }
  return odd;
}

inline void pack_rows(const PackArguments& call) {
  const UnitPlan& plan = *call.plan;
  const std::int64_t stride = call.packed.stride;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const float* const from = call.a + i * call.a_stride;
    float* const to = call.packed.values + i * stride;
    if (plan.order == OperandOrder::in_turn) {
      std::copy_n(from, call.terms, to);
      std::fill(to + call.terms, to + stride, 0.0F);
    } else {
      for (std::int64_t k = 0; k < stride; ++k) {
        const std::int64_t position = operand_position(plan, k);
        to[k] = position < call.terms ? from[position] : 0.0F;
      }
    }
    call.packed.flags[i] = pack_row(plan, to, stride, to, call.packed.codes + i * stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
