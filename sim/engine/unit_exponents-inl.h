// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Largest exponents of blocks of products, as bytes. Compiled once per instruction set: the guard
// flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_EXPONENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_EXPONENTS_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_EXPONENTS_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_EXPONENTS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/numbers-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// What a block of one kind needs beyond the common steps.
enum class BlockKind : std::uint8_t {
  narrow,       ///< exponents within 2^±36: no product or sum comes near the ends of float
  narrow_half,  ///< the same with binary16 output, which may be −0 or infinite on the way
  wide,         ///< products may lie below everything that lanes represent
  down_narrow,  ///< TR-FDPA, exponents as for narrow
  down_wide,    ///< TR-FDPA, exponents as for wide
};

inline constexpr bool has_wide_exponents(BlockKind kind) {
  return kind == BlockKind::wide || kind == BlockKind::down_wide;
}

// Exponent codes: a has 36 − e, b has e + 219, both as bytes; b − a with saturation is the sum of
// the exponents plus 183, or 0 where either is zero.
inline constexpr int b_code_shift = 219 - bias;
inline constexpr int product_code_shift = 183 - bias;
inline constexpr int most_groups = static_cast<int>(longest_block) / 4;
inline constexpr int code_bytes = 64;  ///< of one group of 4 rows of b and one vector

/// What packing found in a panel of b, byte by byte: the largest biased exponents, and the smallest
/// magnitude less one unit (that of a zero is the largest of all).
struct PanelRange {
  ByteVector largest;
  hn::Vec<hn::RebindToUnsigned<FloatTag>> smallest;
  HWY_INLINE PanelRange()
      : largest(hn::Zero(ByteTag())),
        smallest(hn::Set(hn::RebindToUnsigned<FloatTag>(), UINT32_MAX)) {}
};

#if HWY_TARGET == HWY_AVX3
/// The bits of `yes` where those of the mask are set, those of `no` elsewhere.
HWY_INLINE IntVector choose_bits(IntVector mask, IntVector yes, IntVector no) {
  constexpr int table = 0xca;
  return IntVector{_mm512_ternarylogic_epi32(mask.raw, yes.raw, no.raw, table)};
}
#endif

/// The biased exponents of four numbers in each lane, as bytes.
HWY_INLINE ByteVector exponent_fields(FloatVector x0, FloatVector x1, FloatVector x2,
                                      FloatVector x3) {
  const IntTag di;
  const ByteTag d8;
#if HWY_TARGET == HWY_AVX3
  // One instruction chooses bits by a mask.
  const IntVector byte0 = hn::ShiftRight<23>(hn::BitCast(di, x0));
  const IntVector byte1 = hn::ShiftRight<15>(hn::BitCast(di, x1));
  const IntVector byte2 = hn::ShiftRight<7>(hn::BitCast(di, x2));
  const IntVector byte3 = hn::ShiftLeft<1>(hn::BitCast(di, x3));
  const IntVector low = choose_bits(hn::Set(di, 0x00ff), byte0, byte1);
  const IntVector most = choose_bits(hn::Set(di, 0xffff), low, byte2);
  return hn::BitCast(d8, choose_bits(hn::Set(di, 0xffffff), most, byte3));
#else
  const IntVector mask = hn::Set(di, exponent_mask);
  const IntVector low = hn::Or(hn::ShiftRight<23>(hn::And(hn::BitCast(di, x0), mask)),
                               hn::ShiftRight<15>(hn::And(hn::BitCast(di, x1), mask)));
  const IntVector high = hn::Or(hn::ShiftRight<7>(hn::And(hn::BitCast(di, x2), mask)),
                                hn::ShiftLeft<1>(hn::And(hn::BitCast(di, x3), mask)));
  return hn::BitCast(d8, hn::Or(low, high));
#endif
}

/// The exponent codes of `groups` × 4 rows of b in one vector of columns. The four bytes of a lane
/// belong to four consecutive k.
template <BlockKind kKind, NumberCode kCode>
KVSIM_INLINE void pack_exponents(const UnitPlan& plan, const Stored<kCode>* b, std::int64_t stride,
                                 int groups, std::uint8_t* codes, PanelRange& range) {
  const ByteTag d8;
  const ByteVector least = hn::Set(d8, static_cast<std::uint8_t>(plan.smallest_exponent + bias));
  const ByteVector shift = hn::Set(d8, static_cast<std::uint8_t>(b_code_shift));
  for (int g = 0; g < groups; ++g) {
    const FloatVector x0 = load_numbers<kCode>(b);
    const FloatVector x1 = load_numbers<kCode>(b + stride);
    const FloatVector x2 = load_numbers<kCode>(b + 2 * stride);
    const FloatVector x3 = load_numbers<kCode>(b + 3 * stride);
    b += 4 * stride;
    const ByteVector fields = exponent_fields(x0, x1, x2, x3);
    const ByteVector sum = hn::SaturatedAdd(hn::Max(fields, least), shift);
    const ByteVector code = hn::IfThenZeroElse(hn::Eq(fields, hn::Zero(d8)), sum);
    hn::StoreU(code, d8, codes + g * code_bytes);
    range.largest = hn::Max(range.largest, fields);
    if constexpr (has_wide_exponents(kKind)) {
      const hn::RebindToUnsigned<FloatTag> du;
      for (const FloatVector& x : {x0, x1, x2, x3}) {
        const auto less_one = hn::Sub(hn::BitCast(du, hn::Abs(x)), hn::Set(du, 1U));
        range.smallest = hn::Min(range.smallest, less_one);
      }
    }
  }
}

/// The exponents of four products in each lane, as bytes.
HWY_INLINE ByteVector group_code(const std::uint8_t* a_codes, const std::uint8_t* b_codes) {
  const ByteTag d8;
  std::int32_t word;
  std::memcpy(&word, a_codes, sizeof word);
  const ByteVector a = hn::BitCast(d8, hn::Set(IntTag(), word));
  return hn::SaturatedSub(hn::LoadU(d8, b_codes), a);
}

/// The largest product exponent of a block in each lane, plus 183, where a float has its exponent;
/// 0 where all products are zero.
template <int kGroups>
HWY_INLINE IntVector largest_code(const std::uint8_t* a_codes, const std::uint8_t* b_codes) {
  const IntTag di;
  const ByteTag d8;
  const hn::RebindToUnsigned<IntTag> du;
  ByteVector largest = group_code(a_codes, b_codes);
  KVSIM_UNROLL(8)
  for (int g = 1; g < kGroups; ++g) {
    largest = hn::Max(largest, group_code(a_codes + 4 * g, b_codes + g * code_bytes));
  }
  largest = hn::Max(largest, hn::BitCast(d8, hn::ShiftRight<16>(hn::BitCast(du, largest))));
  largest = hn::Max(largest, hn::BitCast(d8, hn::ShiftRight<8>(hn::BitCast(du, largest))));
  return hn::BitCast(di, hn::ShiftRight<1>(hn::ShiftLeft<24>(hn::BitCast(du, largest))));
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
