// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// Operations of one operand on every code of every format of at most 22 bits, tf32 and the
/// accumulator format e8m13 included, values and flags, in every rounding and both kinds of
/// tininess: sqrt, round_to_integral, and convert to every format; the 16-bit formats also under
/// every overflow and subnormal policy.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

constexpr Format kHalves[] = {binary16, bfloat16};
constexpr Format kWider[] = {tf32, e8m13};

template <Op op>
void all_codes(const Format& to, const Format& from, const std::vector<Mode>& modes) {
  FailureLog log;
  constexpr Bits kBlock = 256;
  parallel_for((from.code_mask() + 1) / kBlock, [&](std::uint64_t block) {
    for (Bits i = 0; i < kBlock; ++i) {
      check_case<op>(modes, to, from, block * kBlock + i, 0, 0, log);
    }
  });
  EXPECT_EQ(log.count(), 0U) << log.report();
}

template <Op op>
void all_codes_of_all_formats() {
  for (const Format& f : kHalves) all_codes<op>(f, f, all_modes());
  for (const Format& f : kWider) all_codes<op>(f, f, rounding_modes());
}

void all_conversions(const Format& from, const std::vector<Mode>& modes) {
  for (const NamedFormat& to : formats()) all_codes<Op::convert>(to.format, from, modes);
}

TEST(Unary, SqrtOfEveryCode) { all_codes_of_all_formats<Op::sqrt>(); }
TEST(Unary, RoundToIntegralOfEveryCode) { all_codes_of_all_formats<Op::round_to_integral>(); }
TEST(Unary, ConvertEveryBinary16) { all_conversions(binary16, all_modes()); }
TEST(Unary, ConvertEveryBfloat16) { all_conversions(bfloat16, all_modes()); }
TEST(Unary, ConvertEveryTf32) { all_conversions(tf32, rounding_modes()); }
TEST(Unary, ConvertEveryE8m13) { all_conversions(e8m13, rounding_modes()); }

}  // namespace
}  // namespace kvsim::oracle
