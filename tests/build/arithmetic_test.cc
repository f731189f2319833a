// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The compiler rounds each operation once, as it is written. Without the flags of
// cmake/KvsimFlags.cmake some compiler on some machine gives another value for each of these; the
// expected bits follow from IEEE 754 by hand.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "tests/build/arithmetic_values.h"

namespace {

constexpr std::uint16_t bits(_Float16 x) { return std::bit_cast<std::uint16_t>(x); }

// 1 + 2^-11 is a tie and goes to even, 1, twice. One rounding of the exact sum gives 1 + 2^-10.
constexpr _Float16 sum_of_three(_Float16 a, _Float16 b, _Float16 c) { return a + b + c; }

// x·x = 1 + 2^-9 + 2^-20 rounds to 1 + 2^-9, so that the difference is 0; fused it is 2^-20.
template <class T>
constexpr T square_minus(T x, T y) {
  return x * x - y;
}

constexpr _Float16 to_half(double x) { return static_cast<_Float16>(x); }

constexpr ArithmeticValues at_compile_time = arithmetic_constants;

static_assert(bits(sum_of_three(at_compile_time.one, at_compile_time.half_ulp,
                                at_compile_time.half_ulp)) == 0x3c00);
static_assert(square_minus(at_compile_time.half_x, at_compile_time.half_x_square) == 0);
static_assert(square_minus(at_compile_time.single_x, at_compile_time.single_x_square) == 0);
static_assert(square_minus(at_compile_time.double_x, at_compile_time.double_x_square) == 0);
static_assert(bits(to_half(at_compile_time.above_tie)) == 0x3c01);

// The operands pass through volatile memory, so that these are computed at run time.
TEST(CompilerArithmetic, HalfSumRoundsEachOperation) {
  const _Float16 one = arithmetic_values.one;
  const _Float16 half_ulp = arithmetic_values.half_ulp;
  EXPECT_EQ(bits(sum_of_three(one, half_ulp, half_ulp)), 0x3c00);
}

TEST(CompilerArithmetic, HalfProductIsNotFused) {
  const _Float16 x = arithmetic_values.half_x;
  const _Float16 y = arithmetic_values.half_x_square;
  EXPECT_EQ(static_cast<float>(square_minus(x, y)), 0.0F);
}

TEST(CompilerArithmetic, SingleProductIsNotFused) {
  const float x = arithmetic_values.single_x;
  const float y = arithmetic_values.single_x_square;
  EXPECT_EQ(square_minus(x, y), 0.0F);
}

TEST(CompilerArithmetic, DoubleProductIsNotFused) {
  const double x = arithmetic_values.double_x;
  const double y = arithmetic_values.double_x_square;
  EXPECT_EQ(square_minus(x, y), 0.0);
}

TEST(CompilerArithmetic, DoubleToHalfRoundsOnce) {
  const double x = arithmetic_values.above_tie;
  EXPECT_EQ(bits(to_half(x)), 0x3c01);
}

// The same on a machine with fused instructions at hand: the functions below may use them.
#if defined(__x86_64__)
__attribute__((target("avx2,fma,f16c"))) double fused_target_double() {
  const double x = arithmetic_values.double_x;
  const double y = arithmetic_values.double_x_square;
  return x * x - y;
}

__attribute__((target("avx2,fma,f16c"))) float fused_target_half() {
  const _Float16 x = arithmetic_values.half_x;
  const _Float16 y = arithmetic_values.half_x_square;
  return static_cast<float>(static_cast<_Float16>(x * x - y));
}

__attribute__((target("avx2,fma,f16c"))) std::uint16_t fused_target_conversion() {
  const double x = arithmetic_values.above_tie;
  return bits(static_cast<_Float16>(x));
}

TEST(CompilerArithmetic, FusedInstructionsAreNotUsedUnasked) {
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
    GTEST_SKIP() << "this CPU lacks FMA";
  }
  EXPECT_EQ(fused_target_double(), 0.0);
  EXPECT_EQ(fused_target_half(), 0.0F);
  EXPECT_EQ(fused_target_conversion(), 0x3c01);
}
#endif

}  // namespace
