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

// What Sleef_logf8_u10avx2 of PyTorch 2.11.0 gave on an AMD Zen 4, 17 times not the correctly
// rounded number.
TEST(SleefLog, ResultsOfTheLibrary) {
  constexpr std::array<float, 2> known[] = {
      {0x1.63526ap+0F, 0x1.4fb712p-2F},  {0x1.7e9cd6p+0F, 0x1.9b7d6cp-2F},
      {0x1.5d15dp+3F, 0x1.31ddc4p+1F},   {0x1.737f04p+3F, 0x1.39d4acp+1F},
      {0x1.767a5cp+0F, 0x1.857becp-2F},  {0x1.7f422cp+1F, 0x1.18bffap+0F},
      {0x1.31d6d8p+2F, 0x1.906dep+0F},   {0x1.6b3e54p+0F, 0x1.664b1cp-2F},
      {0x1.7fe0e8p+6F, 0x1.241918p+2F},  {0x1.c97192p+2F, 0x1.f77e46p+0F},
      {0x1.600302p+1F, 0x1.02fa78p+0F},  {0x1.758a74p+1F, 0x1.122cdep+0F},
      {0x1.1c4cf8p+0F, 0x1.ad7c54p-4F},  {0x1.60c2c2p+9F, 0x1.a3c5a2p+2F},
      {0x1.6d7d8p+1F, 0x1.0c98fcp+0F},   {0x1.a82236p+6F, 0x1.2a7af2p+2F},
      {0x1.73ea8cp+2F, 0x1.c2814ep+0F},  {0x1p+0F, 0x0p+0F},
      {0x1p+1F, 0x1.62e43p-1F},          {0x1.8p+1F, 0x1.193ea8p+0F},
      {0x1p-126F, -0x1.5d58ap+6F},       {0x1p-149F, -0x1.9d1dap+6F},
      {0x1.fffffep+127F, 0x1.62e43p+6F}, {0x1p-1F, -0x1.62e43p-1F},
      {0x1.8p-1F, -0x1.269622p-2F},      {0x1.7ffffep-1F, -0x1.269626p-2F},
  };
  int not_rounded = 0;
  for (const auto& [x, expected] : known) {
    EXPECT_EQ(code(sleef_log_u10(x)), code(expected)) << std::hexfloat << x;
    not_rounded += expected != log_f32(x) ? 1 : 0;
  }
  EXPECT_EQ(not_rounded, 17);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sleef_log_u10(0), -infinity);
  EXPECT_EQ(sleef_log_u10(-0.0F), -infinity);
  EXPECT_EQ(sleef_log_u10(infinity), infinity);
  EXPECT_TRUE(std::isnan(sleef_log_u10(-1)));
  EXPECT_TRUE(std::isnan(sleef_log_u10(std::nanf(""))));
}

// At most one unit in the last place from the correctly rounded number.
TEST(SleefLog, IsCloseToTheFunction) {
  for (std::uint32_t bits = 1; bits < 0x7f800000; bits += 7'919'111) {
    const auto x = std::bit_cast<float>(bits);
    const std::int64_t distance =
        std::int64_t{code(sleef_log_u10(x))} - std::int64_t{code(log_f32(x))};
    ASSERT_LE(std::abs(distance), 1) << std::hexfloat << x;
  }
}

}  // namespace
}  // namespace kvsim
