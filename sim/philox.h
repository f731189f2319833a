// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>

namespace kvsim {

/// Four 32-bit words: a Philox counter or its output.
using PhiloxBlock = std::array<std::uint32_t, 4>;
/// Two 32-bit words: a Philox key.
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32-10: a bijection of 128-bit counters for each 64-bit key, made of ten rounds of two
/// 32 × 32 → 64 bit products. It keeps no state, so any element of a stream is computed alone.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11, 2011;
/// the known answers of the Random123 distribution are in the test.
[[nodiscard]] constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
  constexpr std::uint64_t multiplier0 = 0xD2511F53;
  constexpr std::uint64_t multiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t golden_ratio = 0x9E3779B9;     // added to the key's first word each round
  constexpr std::uint32_t sqrt3_minus_one = 0xBB67AE85;  // and to its second word
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = multiplier0 * counter[0];
    const std::uint64_t product1 = multiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += golden_ratio;
    key[1] += sqrt3_minus_one;
  }
  return counter;
}

/// The block at `index` of `stream` under `seed`: key = seed, counter = (index, stream), each split
/// into words with the low half first. Distinct addresses under one seed give distinct blocks.
[[nodiscard]] constexpr PhiloxBlock philox_block(std::uint64_t seed, std::uint64_t stream,
                                                 std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  return philox4x32_10({low(index), high(index), low(stream), high(stream)},
                       {low(seed), high(seed)});
}

/// 64 uniform random bits: words 0 (low half) and 1 (high half) of the block at that address.
[[nodiscard]] constexpr std::uint64_t philox_bits(std::uint64_t seed, std::uint64_t stream,
                                                  std::uint64_t index) {
  const PhiloxBlock block = philox_block(seed, stream, index);
  return (std::uint64_t{block[1]} << 32) | block[0];
}

}  // namespace kvsim
