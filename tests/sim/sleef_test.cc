// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/sleef.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/elementary.h"

namespace kvsim {
namespace {

std::uint32_t code(float x) { return std::bit_cast<std::uint32_t>(x); }

// What Sleef_tanhf8_u10 of PyTorch 2.11.0 gave on an AMD Zen 4, 17 times not the correctly rounded
// number.
TEST(SleefTanh, ResultsOfTheLibrary) {
  constexpr std::array<float, 2> known[] = {
      {0x1.16df8p+3F, 1},
      {-0x1.864b78p-3F, -0x1.81a332p-3F},
      {0x1.185f76p+3F, 1},
      {-0x1.21ccccp-2F, -0x1.1a4d94p-2F},
      {0x1.165cb2p+3F, 1},
      {-0x1.0acaacp-2F, -0x1.04ea2p-2F},
      {0x1.16112cp+3F, 1},
      {-0x1.e0c9f4p-2F, -0x1.c051b6p-2F},
      {0x1.1ec878p+3F, 1},
      {0x1.cc35ap-3F, 0x1.c49ddcp-3F},
      {0x1.17ce56p+3F, 1},
      {0x1.9fc0dp-3F, 0x1.9a2274p-3F},
      {0x1.18c9c6p+3F, 1},
      {0x1.836538p-2F, 0x1.71e9fp-2F},
      {0x1.191a3p+3F, 1},
      {-0x1.1aa074p-2F, -0x1.13a98cp-2F},
      {0, 0},
      {-0.0F, -0.0F},
      {0x1.154244p+3F, 0x1.fffffep-1F},
      {0x1.154246p+3F, 0x1.fffffep-1F},
      {-9, -1},
      {0x1.4484cp-100F, 0x1.4484cp-100F},
      {0x1.a36e2ep-14F, 0x1.a36e2ep-14F},
      {20, 1},
  };
  int not_rounded = 0;
  for (const auto& [x, expected] : known) {
    EXPECT_EQ(code(sleef_tanh_u10(x)), code(expected)) << std::hexfloat << x;
    not_rounded += expected != tanh_f32(x) ? 1 : 0;
  }
  EXPECT_EQ(not_rounded, 17);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sleef_tanh_u10(-infinity), -1.0F);
  EXPECT_TRUE(std::isnan(sleef_tanh_u10(std::nanf(""))));
}

// At most one unit in the last place from the correctly rounded number, and odd.
TEST(SleefTanh, IsCloseToTheFunction) {
  for (std::uint32_t bits = 0x30000000; bits < 0x41200000; bits += 7919) {
    const auto x = std::bit_cast<float>(bits);
    const float y = sleef_tanh_u10(x);
    const std::int64_t distance = std::int64_t{code(y)} - std::int64_t{code(tanh_f32(x))};
    ASSERT_LE(std::abs(distance), 1) << std::hexfloat << x;
    ASSERT_EQ(sleef_tanh_u10(-x), -y);
  }
}

}  // namespace
}  // namespace kvsim
