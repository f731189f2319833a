// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Every pair of codes of every format of at most 8 bits, in every rounding and both kinds of
/// tininess, values and flags, against MPFR. small_modes_test.cc adds the policies.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

const std::vector<Mode> kModes = rounding_modes();

constexpr Format kSmall[] = {e4m3, e5m2, e4m3fnuz, e5m2fnuz, e3m2, e2m3, e2m1};

template <Op op>
void all_pairs(std::span<const Format> formats) {
  for (const Format& f : formats) {
    FailureLog log;
    parallel_for(f.code_mask() + 1, [&](Bits a) {
      for (Bits b = 0; b <= f.code_mask(); ++b) check_case<op>(kModes, f, f, a, b, 0, log);
    });
    EXPECT_EQ(log.count(), 0U) << log.report();
  }
}

constexpr Format kScale[] = {e8m0};

TEST(SmallFormats, AddOnAllPairs) { all_pairs<Op::add>(kSmall); }
TEST(SmallFormats, SubOnAllPairs) { all_pairs<Op::sub>(kSmall); }
TEST(SmallFormats, MulOnAllPairs) { all_pairs<Op::mul>(kSmall); }
TEST(SmallFormats, DivOnAllPairs) { all_pairs<Op::div>(kSmall); }
TEST(SmallFormats, ScaleMulOnAllPairs) { all_pairs<Op::mul>(kScale); }
TEST(SmallFormats, ScaleDivOnAllPairs) { all_pairs<Op::div>(kScale); }

TEST(SmallFormats, FmaOnAllTriplesOfAtMostSixBits) {
  for (const Format& f : {e3m2, e2m3, e2m1}) {
    FailureLog log;
    parallel_for(f.code_mask() + 1, [&](Bits a) {
      for (Bits b = 0; b <= f.code_mask(); ++b) {
        for (Bits c = 0; c <= f.code_mask(); ++c) check_case<Op::fma>(kModes, f, f, a, b, c, log);
      }
    });
    EXPECT_EQ(log.count(), 0U) << log.report();
  }
}

}  // namespace
}  // namespace kvsim::oracle
