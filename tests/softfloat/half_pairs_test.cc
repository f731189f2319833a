// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// add and mul of binary16 and bfloat16 on all 2^32 pairs of codes, ties to even, against hardware.
///
/// binary16 runs against the CPU's own half instructions where it has AVX512-FP16. Otherwise, and
/// for bfloat16, the reference is one hardware operation in a wider format and one rounding to 16
/// bits. Two roundings to nearest equal one where the wider format has at least 2p + 2 bits of
/// precision (S. Figueroa, "When is double rounding innocuous?", 1995): binary32 has 24 = 2·11 + 2
/// for binary16, and 24 ≥ 2·8 + 2 for bfloat16. That theorem speaks of normal results, so:
///  - a subnormal sum is a multiple of the smallest subnormal of its operands and hence exact; so
///    is its value in binary32, which has 24 bits and at least as small a quantum;
///  - a product of binary16 has 22 bits and lies between 2^-48 and 2^32: exact in binary32;
///  - a product of bfloat16 has 16 bits but may lie below binary32's smallest subnormal, where the
///    first rounding would lose what decides the second. It is exact in binary64 (at least 2^-266),
///    so there it is rounded once, to a multiple of 2^-133, in binary64;
///  - overflow: a result that rounds to infinity in binary32 exceeds the largest number of the
///    16-bit format by more than half a unit.
/// NaN of any payload counts as the one NaN of softfloat.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <memory>

#include "softfloat/formats.h"
#include "tests/softfloat/half_hardware.h"
#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {
namespace {

using Row = std::array<std::uint16_t, 65536>;

/// Compares the row a ∘ b, b = 0…65535, for every a with what `reference` writes for it.
template <const Format& f, Op op>
void all_pairs(void (*reference)(std::uint16_t a, std::uint16_t* row)) {
  FailureLog log;
  parallel_for(65536, [&](std::uint64_t a) {
    thread_local const auto row = std::make_unique<Row>();
    reference(static_cast<std::uint16_t>(a), row->data());
    constexpr Bits kNan = limits(f).nan, kMagnitude = limits(f).sign - 1;
    for (Bits b = 0; b < 65536; ++b) {
      const Rounded got = tested<op>(f, f, a, b, 0, {});
      const Bits want = (*row)[b];
      const bool both_nan = got.bits == kNan && (want & kMagnitude) > limits(f).infinity;
      if (got.bits != want && !both_nan) [[unlikely]] {
        log.record({name(op), f, f, {a, b, 0}, 2, {}, got, {want, got.flags}});
      }
    }
  });
  EXPECT_EQ(log.count(), 0U) << log.report();
}

TEST(HalfPairs, AddOnAllPairsOfBinary16) {
  RecordProperty("binary16_reference", binary16_method());
  all_pairs<softfloat::binary16, Op::add>(binary16_add_row());
}
TEST(HalfPairs, MulOnAllPairsOfBinary16) {
  all_pairs<softfloat::binary16, Op::mul>(binary16_mul_row());
}
TEST(HalfPairs, AddOnAllPairsOfBfloat16) {
  all_pairs<softfloat::bfloat16, Op::add>(bfloat16_add_row());
}
TEST(HalfPairs, MulOnAllPairsOfBfloat16) {
  all_pairs<softfloat::bfloat16, Op::mul>(bfloat16_mul_row());
}

}  // namespace
}  // namespace kvsim::oracle
