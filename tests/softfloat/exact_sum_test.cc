// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// exact_sum and exact_dot against GMP integers in units of 2^-2148, and against themselves in
/// another order.

#include "softfloat/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "softfloat/formats.h"
#include "tests/softfloat/operands.h"
#include "tests/softfloat/sum_oracle.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

constexpr Format kFormats[] = {binary64, binary32, binary16, bfloat16, e8m13, e4m3, e2m1};

/// Random codes; without NaN, and mostly without infinities.
std::vector<Bits> draw(const Format& f, std::size_t count, std::uint64_t seed, bool infinities) {
  const RandomOperands random(f);
  std::vector<Bits> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = random(mix(seed) + i);
    const Kind kind = decode(f, codes[i]).kind;
    if (kind == Kind::nan || (kind == Kind::infinite && !infinities)) codes[i] = i % 2;
  }
  return codes;
}

void expect_dot(const Format& f, const std::vector<Bits>& a, const std::vector<Bits>& b,
                std::span<const Mode> modes) {
  const Exact exact = defined_dot(f, a, b);
  for (const NamedFormat& row : formats()) {
    for (const Mode& mode : modes) {
      const Rounded got =
          b.empty() ? exact_sum(f, a, row.format, mode) : exact_dot(f, a, b, row.format, mode);
      const Rounded want = round(exact, row.format, mode);
      ASSERT_TRUE(got == want) << a.size() << " terms of " << format_name(f) << " to " << row.name
                               << ": got " << describe(row.format, got.bits) << ", want "
                               << describe(row.format, want.bits);
    }
  }
}

TEST(ExactSum, FollowsItsDefinition) {
  const std::vector<Mode> modes = rounding_modes();
  for (const Format& f : kFormats) {
    for (std::uint64_t i = 0; i < 150; ++i) {
      const std::size_t count = i < 10 ? i / 2 : 2 + mix(i) % 30;
      const std::vector<Bits> a = draw(f, count, 2 * i, i % 8 == 0);
      const std::vector<Bits> b = draw(f, count, 2 * i + 1, i % 8 == 1);
      expect_dot(f, a, {}, modes);
      expect_dot(f, a, b, modes);
    }
  }
}

TEST(ExactSum, CancelsToTheLastBit) {
  // Every term and its negative, and one more: what is left is that one.
  for (const Format& f : kFormats) {
    std::vector<Bits> a = draw(f, 500, 99, false);
    const std::size_t count = a.size();
    for (std::size_t i = 0; i < count; ++i) a.push_back(a[i] ^ limits(f).sign);
    a.push_back(1);
    EXPECT_EQ(exact_sum(f, a, f, {}), (Rounded{1, {}})) << format_name(f);
  }
}

TEST(ExactSum, AddsHundredThousandTermsInAnyOrder) {
  for (const Format& f : {binary64, binary32}) {
    std::vector<Bits> a = draw(f, 100'000, 7, false);
    const std::vector<Bits> none;
    const Mode mode;
    const Rounded want = round(defined_dot(f, a, none), binary64, mode);
    EXPECT_EQ(exact_sum(f, a, binary64), want);
    std::reverse(a.begin(), a.end());
    EXPECT_EQ(exact_sum(f, a, binary64), want);
    std::sort(a.begin(), a.end());
    EXPECT_EQ(exact_sum(f, a, binary64), want);
    const std::vector<Bits> b = draw(f, 100'000, 8, false);
    EXPECT_EQ(exact_dot(f, a, b, binary64), round(defined_dot(f, a, b), binary64, mode));
  }
}

TEST(ExactSum, CarriesThroughManyEqualTerms) {
  // 10^6 times the largest number: the carries go far beyond one limb.
  for (const Format& f : kFormats) {
    ExactAccumulator sum;
    for (int i = 0; i < 1'000'000; ++i) sum.add(f, limits(f).largest);
    const Operand largest = decode(f, limits(f).largest);
    Exact exact = exact_value(largest);
    exact.significand *= 1'000'000;
    EXPECT_EQ(sum.round(binary64), round(exact, binary64, {})) << format_name(f);
    EXPECT_EQ(sum.round(binary32), round(exact, binary32, {})) << format_name(f);
  }
}

}  // namespace
}  // namespace kvsim::oracle
