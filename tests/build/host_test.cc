// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// What the project takes for granted of the machine and the compiler.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <climits>
#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

#if defined(__FAST_MATH__)
#error "kvsim is never compiled with -ffast-math"
#endif
// 0: each operation rounds to its own type. 16 is the same for _Float16 and up (g++ with
// -fexcess-precision=16).
static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16);
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<float>::digits == 24);
static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<double>::digits == 53);
static_assert(sizeof(_Float16) == 2);
static_assert(CHAR_BIT == 8);
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(std::size_t) == 8);

TEST(Host, RoundsToNearestEven) {
  const volatile double one = 1.0;
  const volatile double tie = 0x1p-53;
  EXPECT_EQ(one + tie, 1.0);
  EXPECT_EQ((one + 0x1p-52) + tie, 1.0 + 0x1p-51);
}

TEST(Host, KeepsSubnormals) {
  const volatile float smallest_normal = FLT_MIN;
  const float half = smallest_normal * 0.5F;
  EXPECT_EQ(std::bit_cast<std::uint32_t>(half), 0x00400000U);  // not flushed to zero
  const volatile float subnormal = 0x1p-149F;
  EXPECT_EQ(subnormal * 0x1p+120F, 0x1p-29F);  // not taken for zero
}

#if defined(__x86_64__)
TEST(Host, FlushModesAreOff) {
  const unsigned control = _mm_getcsr();
  EXPECT_EQ(control & 0x8000U, 0U)
      << "flush to zero is on: a linked object was built with fast math";
  EXPECT_EQ(control & 0x0040U, 0U) << "denormals are zero is on";
  EXPECT_EQ(control & 0x6000U, 0U) << "the rounding direction is not to nearest";
}
#endif

}  // namespace
