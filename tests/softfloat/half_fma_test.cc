// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// fma of binary16 and bfloat16 on 10^8 triples each, values and flags, every rounding and both
/// kinds of tininess in turn, against exact 128-bit integers. Operands are biased toward the edges
/// of the format; every fourth addend nearly cancels the product.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/integer_oracle.h"
#include "tests/softfloat/operands.h"

namespace kvsim::oracle {
namespace {

template <const Format& f>
void triples(std::uint64_t blocks) {
  const std::vector<Operand> table = decode_all(f);
  const std::vector<Mode> modes = rounding_modes();
  const RandomOperands random(f);
  FailureLog log;
  constexpr std::uint64_t kBlock = 10000;
  parallel_for(blocks, [&](std::uint64_t block) {
    for (std::uint64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
      const Bits a = random(4 * i), b = random(4 * i + 1);
      const Bits c = i % 4 == 0 ? random.near_cancellation(a, b, 4 * i + 2) : random(4 * i + 2);
      const Mode& mode = modes[mix(4 * i + 3) % modes.size()];
      const Exact exact = integer_fma(table[a], table[b], table[c]);
      check_modes<Op::fma>({&mode, 1}, f, f, a, b, c, exact, exact, log);
    }
  });
  EXPECT_EQ(log.count(), 0U) << log.report();
}

TEST(HalfFma, HundredMillionTriplesOfBinary16) { triples<softfloat::binary16>(10000); }
TEST(HalfFma, HundredMillionTriplesOfBfloat16) { triples<softfloat::bfloat16>(10000); }

}  // namespace
}  // namespace kvsim::oracle
