// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// binary32 and binary64 against MPFR, values and flags: all pairs (fma: triples; sqrt and convert:
/// single operands of level 2) of the patterns of level 1, and 10^7 weighted random cases for each
/// operation and format, each computed once and checked in every rounding.

#include "tests/softfloat/wide_cases.h"

namespace kvsim::oracle {
namespace {

using softfloat::binary32;
using softfloat::binary64;

constexpr std::uint64_t kCases = 10'000'000;

template <Op op>
void check(const Format& f) {
  check_patterns<op>(f, 1);
  check_random<op>(f, kCases, f.precision * 8U + static_cast<unsigned>(op));
}

void check_sqrt(const Format& f) {
  check_patterns<Op::sqrt>(f, 2);
  check_random<Op::sqrt>(f, kCases, f.precision * 8U);
}

void check_convert(const Format& f) {
  check_conversion_patterns(f, 2);
  check_random<Op::convert>(f, kCases, f.precision * 9U);
}

TEST(Wide, Binary32Add) { check<Op::add>(binary32); }
TEST(Wide, Binary32Sub) { check<Op::sub>(binary32); }
TEST(Wide, Binary32Mul) { check<Op::mul>(binary32); }
TEST(Wide, Binary32Div) { check<Op::div>(binary32); }
TEST(Wide, Binary32Fma) { check<Op::fma>(binary32); }
TEST(Wide, Binary32Sqrt) { check_sqrt(binary32); }
TEST(Wide, Binary32Convert) { check_convert(binary32); }
TEST(Wide, Binary64Add) { check<Op::add>(binary64); }
TEST(Wide, Binary64Sub) { check<Op::sub>(binary64); }
TEST(Wide, Binary64Mul) { check<Op::mul>(binary64); }
TEST(Wide, Binary64Div) { check<Op::div>(binary64); }
TEST(Wide, Binary64Fma) { check<Op::fma>(binary64); }
TEST(Wide, Binary64Sqrt) { check_sqrt(binary64); }
TEST(Wide, Binary64Convert) { check_convert(binary64); }

TEST(Wide, RoundToIntegral) {
  for (const Format& f : {binary32, binary64}) {
    check_patterns<Op::round_to_integral>(f, 2);
    check_random<Op::round_to_integral>(f, kCases / 10, 7);
  }
}

}  // namespace
}  // namespace kvsim::oracle
