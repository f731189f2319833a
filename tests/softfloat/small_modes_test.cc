// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Every pair of codes of every format of at most 8 bits under every combination of rounding,
/// tininess, overflow policy and subnormal policy, values and flags, against MPFR; the same for
/// every code and the operations of one operand, conversions between all small formats included.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

const std::vector<Mode> kModes = all_modes();

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

TEST(SmallModes, AddOnAllPairs) { all_pairs<Op::add>(kSmall); }
TEST(SmallModes, SubOnAllPairs) { all_pairs<Op::sub>(kSmall); }
TEST(SmallModes, MulOnAllPairs) { all_pairs<Op::mul>(kSmall); }
TEST(SmallModes, DivOnAllPairs) { all_pairs<Op::div>(kSmall); }

TEST(SmallModes, ScaleOnAllPairs) {
  constexpr Format kScale[] = {e8m0};
  all_pairs<Op::mul>(kScale);
  all_pairs<Op::div>(kScale);
}

TEST(SmallModes, UnaryOnAllCodes) {
  for (const Format& f : kSmall) {
    FailureLog log;
    for (Bits a = 0; a <= f.code_mask(); ++a) {
      check_case<Op::sqrt>(kModes, f, f, a, 0, 0, log);
      check_case<Op::round_to_integral>(kModes, f, f, a, 0, 0, log);
    }
    EXPECT_EQ(log.count(), 0U) << log.report();
  }
}

TEST(SmallModes, ConversionsToEveryFormat) {
  constexpr Format kFrom[] = {e4m3, e5m2, e4m3fnuz, e5m2fnuz, e3m2, e2m3, e2m1, e8m0};
  for (const Format& from : kFrom) {
    for (const NamedFormat& to : formats()) {
      FailureLog log;
      for (Bits a = 0; a <= from.code_mask(); ++a) {
        check_case<Op::convert>(kModes, to.format, from, a, 0, 0, log);
      }
      EXPECT_EQ(log.count(), 0U) << log.report();
    }
  }
}

}  // namespace
}  // namespace kvsim::oracle
