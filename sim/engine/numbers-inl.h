// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Numbers that are stored as floats or codes, read into float lanes. Compiled once per instruction
// set: the guard flips.
#if defined(KVSIM_SIM_ENGINE_NUMBERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_NUMBERS_INL_H
#undef KVSIM_SIM_ENGINE_NUMBERS_INL_H
#else
#define KVSIM_SIM_ENGINE_NUMBERS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/numbers.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// The type in memory of numbers stored as kCode.
template <NumberCode kCode>
struct StoredAs {
  using Type = std::uint16_t;
};
template <>
struct StoredAs<NumberCode::binary32> {
  using Type = float;
};
template <NumberCode kCode>
using Stored = typename StoredAs<kCode>::Type;

/// The first of the numbers behind a pointer whose code is kCode.
template <NumberCode kCode>
const Stored<kCode>* stored(NumberPointer numbers) {
  return static_cast<const Stored<kCode>*>(numbers.data());
}

/// binary16 codes in the upper halves of 32 bits; what is in the lower halves does not matter.
/// kSpecials: infinities and NaN come out as such; otherwise they are 2^16 and more.
template <bool kSpecials>
HWY_INLINE FloatVector binary16_numbers(hn::Vec<hn::RebindToUnsigned<FloatTag>> codes) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  constexpr std::int32_t kept = static_cast<std::int32_t>(0x8fffe000U);
  const auto fields = hn::And(hn::ShiftRight<3>(hn::BitCast(di, codes)), hn::Set(di, kept));
  // From the bias of binary16 to that of binary32.
  const FloatVector x = hn::Mul(hn::BitCast(d, fields), hn::Set(d, 0x1p112F));
  if constexpr (!kSpecials) return x;
  const auto exponent = hn::Set(di, 0x0f800000);
  const auto special = hn::Eq(hn::And(fields, exponent), exponent);
  const auto infinity = hn::IfThenElseZero(special, hn::Set(di, 0x7f800000));
  return hn::Or(x, hn::BitCast(d, infinity));
}

/// Numbers whose codes lie in the upper halves of 32 bits.
template <NumberCode kCode, bool kSpecials>
HWY_INLINE FloatVector upper_numbers(hn::Vec<hn::RebindToUnsigned<FloatTag>> codes) {
  const FloatTag d;
  if constexpr (kCode == NumberCode::binary16) return binary16_numbers<kSpecials>(codes);
  const hn::RebindToUnsigned<FloatTag> du;
  return hn::BitCast(d, hn::And(codes, hn::Set(du, 0xffff0000U)));
}

/// Numbers whose codes lie in the lower halves.
template <NumberCode kCode, bool kSpecials>
HWY_INLINE FloatVector lower_numbers(hn::Vec<hn::RebindToUnsigned<FloatTag>> codes) {
  const auto raised = hn::ShiftLeft<16>(codes);
  if constexpr (kCode == NumberCode::binary16) return binary16_numbers<kSpecials>(raised);
  return hn::BitCast(FloatTag(), raised);
}

/// As many numbers as a vector holds.
template <NumberCode kCode>
HWY_INLINE FloatVector load_numbers(const Stored<kCode>* from) {
  const FloatTag d;
  if constexpr (kCode == NumberCode::binary32) {
    return hn::LoadU(d, from);
  } else {
    const hn::Rebind<std::uint16_t, FloatTag> d16;
    const auto codes = hn::LoadU(d16, from);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    if constexpr (kCode == NumberCode::binary16) {
      const hn::Rebind<hwy::float16_t, FloatTag> dh;
      return hn::PromoteTo(d, hn::BitCast(dh, codes));
    }
#endif
    const hn::RebindToUnsigned<FloatTag> du;
    return lower_numbers<kCode, true>(hn::PromoteTo(du, codes));
  }
}

#if HWY_TARGET != HWY_SCALAR

/// Numbers of one column that lie in 128 bits: what is transposed at once.
template <NumberCode kCode>
inline constexpr std::int64_t numbers_at_once =
    16 / static_cast<std::int64_t>(sizeof(Stored<kCode>));

/// 128 bits of every fourth column, from that at `from` on.
template <class T>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<FloatTag>> load_pieces(const T* from, std::int64_t stride) {
  const hn::FixedTag<std::uint32_t, 4> piece;
  const auto load = [&](std::int64_t i) HWY_ATTR {
    return hn::LoadU(piece, reinterpret_cast<const std::uint32_t*>(from + 4 * i * stride));
  };
#if HWY_TARGET == HWY_AVX3
  const hn::FixedTag<std::uint32_t, 8> half;
  const hn::FixedTag<std::uint32_t, 16> whole;
  return hn::Combine(whole, hn::Combine(half, load(3), load(2)),
                     hn::Combine(half, load(1), load(0)));
#elif HWY_TARGET == HWY_AVX2
  return hn::Combine(hn::FixedTag<std::uint32_t, 8>(), load(1), load(0));
#else
  return load(0);
#endif
}

/// Transposes numbers_at_once numbers of each of a vector's columns: number k of column j, which is
/// from[j × stride + k], goes to lane j of store(k, vector).
template <NumberCode kCode, bool kSpecials, class Store>
HWY_INLINE void transpose_numbers(const Stored<kCode>* from, std::int64_t stride,
                                  const Store& store) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Repartition<std::uint64_t, FloatTag> d64;
  const auto x0 = load_pieces(from, stride);
  const auto x1 = load_pieces(from + stride, stride);
  const auto x2 = load_pieces(from + 2 * stride, stride);
  const auto x3 = load_pieces(from + 3 * stride, stride);
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, x0, x1));   // 00 10 01 11
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, x2, x3));   // 20 30 21 31
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, x0, x1));  // 02 12 03 13
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, x2, x3));
  const auto put = [&](std::int64_t i, hn::Vec<decltype(d64)> words) HWY_ATTR {
    const auto w = hn::BitCast(d32, words);
    if constexpr (kCode == NumberCode::binary32) {
      store(i, hn::BitCast(FloatTag(), w));
    } else {  // 32 bits hold two numbers of a column
      store(2 * i, lower_numbers<kCode, kSpecials>(w));
      store(2 * i + 1, upper_numbers<kCode, kSpecials>(w));
    }
  };
  put(0, hn::InterleaveLower(d64, low01, low23));
  put(1, hn::InterleaveUpper(d64, low01, low23));
  put(2, hn::InterleaveLower(d64, high01, high23));
  put(3, hn::InterleaveUpper(d64, high01, high23));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#endif
