// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <cstdint>

#include "sim/exp.h"
#include "softfloat/formats.h"
#include "tests/sim/exp_oracle.h"

namespace kvsim {
namespace {

using softfloat::Rounding;
constexpr softfloat::Format format = softfloat::binary32;

void check(std::uint64_t x) {
  const auto exact = oracle::exact_exp(oracle::decode(format, x), format.precision + 2);
  for (const Rounding rounding : {Rounding::ties_to_even, Rounding::toward_zero,
                                  Rounding::toward_positive, Rounding::to_odd}) {
    const softfloat::Mode mode{.rounding = rounding};
    const auto expected = oracle::round(exact, format, mode);
    const auto got = exp_correctly_rounded(format, x, mode);
    ASSERT_TRUE(got == expected) << std::hex << "exp of 0x" << x << " is 0x" << got.bits
                                 << ", expected 0x" << expected.bits;
  }
}

// Every binary32 from −104 to −2^−27, values and flags, in four roundings.
TEST(ExpSweep, EveryBinary32FromMinus104) {
  for (std::uint64_t x = 0xb2000000; x <= 0xc2d00000 && !HasFatalFailure(); ++x) check(x);
}

// Between −2^−27 and −0 every result lies just below 1, whatever the argument.
TEST(ExpSweep, Binary32CloseToZero) {
  for (std::uint64_t x = 0x80000000; x < 0xb2000000 && !HasFatalFailure(); x += 101) check(x);
}

}  // namespace
}  // namespace kvsim
