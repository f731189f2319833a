// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// VDPBF16PS on this CPU, cases that ask it everything, and the rules that it might follow instead.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/units/matrix_unit.h"

namespace kvsim {

/// c + a[1]·b[1], then + a[0]·b[0].
struct Bf16Pair {
  std::uint32_t c = 0;
  std::uint16_t a[2] = {};
  std::uint16_t b[2] = {};
};

/// Cases of the comparison: the 10^6 of the goldens are the first ones.
inline constexpr std::size_t bf16_case_count = 1'000'000;

/// Case `i`: any codes; numbers that overlap and cancel; products and sums near the smallest normal
/// number; sums near a tie; the largest numbers; sums just below the smallest normal number; zeros,
/// infinities and NaN among numbers.
[[nodiscard]] Bf16Pair bf16_case(std::uint64_t i);

/// True where this CPU has the instruction (AVX512-BF16 and AVX512-VL, enabled by the system).
[[nodiscard]] bool cpu_has_vdpbf16ps();

/// The instruction itself, on every case. Only where cpu_has_vdpbf16ps().
void cpu_vdpbf16ps(std::span<const Bf16Pair> cases, std::span<std::uint32_t> results);

/// The unit's result.
[[nodiscard]] std::uint32_t unit_result(const MatrixUnit& unit, const Bf16Pair& each);

/// A rule that the instruction might follow, and does not.
struct WrongRule {
  std::string name;
  MatrixUnit unit;
};
[[nodiscard]] std::vector<WrongRule> wrong_rules();

/// The indices of the `count` sharpest cases: those that refute most wrong rules, but at least a
/// share for every rule; in increasing order. `results` are the instruction's.
[[nodiscard]] std::vector<std::size_t> sharpest(std::span<const std::uint32_t> results,
                                                std::size_t count);

/// SHA-256 of the results' bytes, little-endian, in the order of the cases.
[[nodiscard]] std::string digest_of(std::span<const std::uint32_t> results);

}  // namespace kvsim
