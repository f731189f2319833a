// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/philox.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace kvsim {
namespace {

// The three known answers for philox4x32, 10 rounds, of the Random123 distribution (kat_vectors):
// zeros, ones, and the hexadecimal digits of π as counter and key.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The same answer through the address: its words are the low and high halves in order.
TEST(Philox, AddressIsSeedStreamIndex) {
  constexpr std::uint64_t seed = 0x299f31d0a4093822;
  constexpr std::uint64_t index = 0x85a308d3243f6a88;
  constexpr std::uint64_t stream = 0x0370734413198a2e;
  static_assert(philox_block(seed, stream, index)[0] == 0xd16cfe09);
  EXPECT_EQ(philox_block(seed, stream, index),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox_bits(seed, stream, index), 0x94fdccebd16cfe09);
}

TEST(Philox, NeighbouringAddressesDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    seen.insert(philox_bits(i, 0, 0));
    seen.insert(philox_bits(0, i + 1, 0));
    seen.insert(philox_bits(0, 0, i + 1));
  }
  EXPECT_EQ(seen.size(), 3000U);
}

}  // namespace
}  // namespace kvsim
