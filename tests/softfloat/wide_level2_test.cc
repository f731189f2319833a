// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// binary32 and binary64 against MPFR: all pairs of the patterns of level 2, and 10^8 random fma
/// cases (all triples of level 2 would be more than 10^10).

#include "tests/softfloat/wide_cases.h"

namespace kvsim::oracle {
namespace {

using softfloat::binary32;
using softfloat::binary64;

constexpr std::uint64_t kCases = 100'000'000;

TEST(WideLevel2, Binary32Add) { check_patterns<Op::add>(binary32, 2); }
TEST(WideLevel2, Binary32Mul) { check_patterns<Op::mul>(binary32, 2); }
TEST(WideLevel2, Binary32Div) { check_patterns<Op::div>(binary32, 2); }
TEST(WideLevel2, Binary32Sub) { check_patterns<Op::sub>(binary32, 2); }
TEST(WideLevel2, Binary32Fma) { check_random<Op::fma>(binary32, kCases, 1); }
TEST(WideLevel2, Binary64Add) { check_patterns<Op::add>(binary64, 2); }
TEST(WideLevel2, Binary64Sub) { check_patterns<Op::sub>(binary64, 2); }
TEST(WideLevel2, Binary64Mul) { check_patterns<Op::mul>(binary64, 2); }
TEST(WideLevel2, Binary64Div) { check_patterns<Op::div>(binary64, 2); }
TEST(WideLevel2, Binary64Fma) { check_random<Op::fma>(binary64, kCases, 2); }

}  // namespace
}  // namespace kvsim::oracle
