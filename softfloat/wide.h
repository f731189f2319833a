// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "softfloat/mutants.h"

namespace kvsim::softfloat {

__extension__ using uint128 = unsigned __int128;
__extension__ using int128 = __int128;

/// The two significand containers of exact intermediates: 64 bits carry every operation on formats
/// of at most 24 bits of precision, 128 bits those up to binary64. (std::unsigned_integral does not
/// accept the 128-bit type in strict mode, hence a concept of our own.)
template <class T>
concept Significand = std::same_as<T, std::uint64_t> || std::same_as<T, uint128>;

template <Significand S>
inline constexpr int digits = static_cast<int>(sizeof(S)) * 8;

/// Number of zero bits above the leading one; `digits<S>` for zero.
template <Significand S>
[[nodiscard]] constexpr int leading_zeros(S value) {
  if constexpr (std::same_as<S, std::uint64_t>) {
    return std::countl_zero(value);
  } else {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    if (high != 0) return std::countl_zero(high);
    return 64 + std::countl_zero(static_cast<std::uint64_t>(value));
  }
}

/// `value` >> `shift` for any shift ≥ 0; bits that fall out are collected in the lowest bit.
template <Significand S>
[[nodiscard]] constexpr S shift_right_sticky(S value, int shift) {
  if (shift == 0) return value;
  if (shift >= digits<S>) return static_cast<S>(value != 0 ? 1 : 0);
  if (mutant_is_on(Mutant::sticky_bit_lost)) return static_cast<S>(value >> shift);
  const S lost = static_cast<S>(value << (digits<S> - shift));
  return static_cast<S>(value >> shift) | static_cast<S>(lost != 0 ? 1 : 0);
}

}  // namespace kvsim::softfloat
