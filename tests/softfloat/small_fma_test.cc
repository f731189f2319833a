// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Every triple of codes of every 8-bit format (2^24 each): fma in every rounding and both kinds of
/// tininess, values and flags, against exact 128-bit integers.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/integer_oracle.h"
#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {
namespace {

/// Seven roundings (stochastic with a random word of the case's own) and both kinds of tininess.
std::vector<Mode> modes() {
  std::vector<Mode> list = rounding_modes();
  std::erase_if(list, [](const Mode& mode) {
    return mode.rounding == Rounding::stochastic && mode.random != 0x80000000U;
  });
  return list;
}

template <const Format& f>
void all_triples() {
  const std::vector<Operand> table = decode_all(f);
  const std::vector<Mode> list = modes();
  FailureLog log;
  parallel_for(table.size(), [&](Bits a) {
    for (Bits b = 0; b < table.size(); ++b) {
      for (Bits c = 0; c < table.size(); ++c) {
        const Exact exact = integer_fma(table[a], table[b], table[c]);
        check_modes<Op::fma>(list, f, f, a, b, c, exact, exact, log);
      }
    }
  });
  EXPECT_EQ(log.count(), 0U) << log.report();
}

TEST(SmallFma, AllTriplesOfE4m3) { all_triples<softfloat::e4m3>(); }
TEST(SmallFma, AllTriplesOfE5m2) { all_triples<softfloat::e5m2>(); }
TEST(SmallFma, AllTriplesOfE4m3fnuz) { all_triples<softfloat::e4m3fnuz>(); }
TEST(SmallFma, AllTriplesOfE5m2fnuz) { all_triples<softfloat::e5m2fnuz>(); }

}  // namespace
}  // namespace kvsim::oracle
