// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Distances are counted by walking through the numbers of small formats, and worked by hand.
#include "sim/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::binary64;
using softfloat::Bits;
using softfloat::Format;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

/// 16-bit codes as bytes.
std::vector<std::byte> halves(std::initializer_list<unsigned> codes) {
  std::vector<std::byte> out;
  for (const unsigned code : codes) {
    out.push_back(static_cast<std::byte>(code & 0xff));
    out.push_back(static_cast<std::byte>(code >> 8));
  }
  return out;
}

TEST(Compare, DistanceIsTheNumberOfStepsThroughASmallFormat) {
  for (const Format& format :
       {softfloat::e4m3, softfloat::e5m2, softfloat::e4m3fnuz, softfloat::e5m2fnuz}) {
    // The numbers in increasing order, −0 left out; found by sorting values, not codes.
    std::vector<Bits> codes;
    for (Bits code = 0; code < 256; ++code) {
      const double value = softfloat::to_double(format, code);
      if (std::isnan(value) || (value == 0 && std::signbit(value))) continue;
      codes.push_back(code);
    }
    std::sort(codes.begin(), codes.end(), [&](Bits x, Bits y) {
      return softfloat::to_double(format, x) < softfloat::to_double(format, y);
    });
    for (std::size_t i = 0; i < codes.size(); ++i) {
      for (std::size_t j = 0; j < codes.size(); ++j) {
        ASSERT_EQ(ulp_distance(format, codes[i], codes[j]), i < j ? j - i : i - j)
            << codes[i] << " " << codes[j];
      }
    }
  }
}

TEST(Compare, ZerosAreNoStepApartAndStillDiffer) {
  EXPECT_EQ(ulp_distance(binary32, 0x00000000, 0x80000000), 0U);
  EXPECT_FALSE(same_result(binary32, 0x00000000, 0x80000000));
  EXPECT_EQ(ulp_distance(binary32, 0x80000001, 0x00000001), 2U);
}

TEST(Compare, InfinityStandsBehindTheLargestNumber) {
  EXPECT_EQ(ulp_distance(binary16, 0x7c00, 0x7bff), 1U);
  EXPECT_EQ(ulp_distance(binary64, 0x7ff0000000000000, 0xfff0000000000000), 0xffe0000000000000U);
}

TEST(Compare, NanHasNoDistanceAndEqualsNan) {
  EXPECT_EQ(ulp_distance(binary16, 0x7e00, 0x3c00), std::nullopt);
  EXPECT_TRUE(same_result(binary16, 0x7e00, 0xfe01));
  EXPECT_FALSE(same_result(binary16, 0x7e00, 0x7c00));
  EXPECT_TRUE(same_result(softfloat::e4m3fnuz, 0x80, 0x80));
  EXPECT_FALSE(same_result(binary16, 0x7e00, 0xfe01, NanEquality::equal_bits));
  const auto a = halves({0x7e00, 0x7e00});
  const auto b = halves({0xfe00, 0x7e00});
  EXPECT_EQ(compare_codes(binary16, a, b).different, 0);
  EXPECT_EQ(compare_codes(binary16, a, b, NanEquality::equal_bits).different, 1);
  EXPECT_EQ(mismatch_map(binary16, a, b, 1, 2).size(), 0U);
  EXPECT_EQ(mismatch_map(binary16, a, b, 1, 2, NanEquality::equal_bits).size(), 1U);
}

TEST(Compare, SummaryOfAHandMadePair) {
  // 1, 1 + 3 steps, NaN against NaN, NaN against 1, +0 against −0, 2 against its lower neighbour.
  const auto a = halves({0x3c00, 0x3c03, 0x7e00, 0x7e00, 0x0000, 0x4000});
  const auto b = halves({0x3c00, 0x3c00, 0xfe00, 0x3c00, 0x8000, 0x3fff});
  const Comparison found = compare_codes(binary16, a, b);
  EXPECT_EQ(found.elements, 6);
  EXPECT_EQ(found.different, 4);
  EXPECT_EQ(found.first, 1);
  EXPECT_EQ(found.not_a_number, 1);
  EXPECT_EQ(found.max_ulp, 3U);
  EXPECT_EQ(found.farthest, 1);
  EXPECT_EQ(found.mean_ulp, (3.0 + 0.0 + 1.0) / 5);
}

TEST(Compare, EqualTensorsHaveNoFirstDifference) {
  const auto a = halves({0x3c00, 0x0001});
  const Comparison found = compare_codes(binary16, a, a);
  EXPECT_EQ(found.different, 0);
  EXPECT_EQ(found.first, -1);
  EXPECT_EQ(found.farthest, -1);
  EXPECT_EQ(found.mean_ulp, 0);
}

TEST(Compare, DifferencesBeyondTheFirstStretchAreFound) {
  std::vector<float> values(2000, 1.0F);
  const auto a = encode_values(binary32, values);
  values[1999] = 1.0F + std::numeric_limits<float>::epsilon();
  values[600] = -1.0F;
  const Comparison found = compare_codes(binary32, a, encode_values(binary32, values));
  EXPECT_EQ(found.different, 2);
  EXPECT_EQ(found.first, 600);
  EXPECT_EQ(found.max_ulp, 2U * 0x3f800000U);
}

TEST(Compare, MapGroupsHeadsThatDifferAtTheSamePositions) {
  // [4 heads, 5 positions, 2]: heads 0 and 3 at positions 1, 2, 4; head 2 at position 0.
  const std::vector<std::byte> a(40);
  std::vector<std::byte> b = a;
  const auto change = [&](std::size_t head, std::size_t position, std::size_t column) {
    b[(head * 5 + position) * 2 + column] = std::byte{1};
  };
  for (const std::size_t head : {0U, 3U}) {
    change(head, 1, 0);
    change(head, 2, 1);
    change(head, 4, 0);
  }
  change(3, 4, 1);
  change(2, 0, 0);
  const auto map = mismatch_map(softfloat::e4m3, a, b, 4, 5);
  const MismatchGroup outer{{{0, 0}, {3, 3}}, {{1, 2}, {4, 4}}, 7};
  const MismatchGroup inner{{{2, 2}}, {{0, 0}}, 1};
  EXPECT_THAT(map, ElementsAre(outer, inner));
  EXPECT_THAT(mismatch_map(softfloat::e4m3, a, a, 4, 5), IsEmpty());
  // The same bytes as two heads of twenty rows of one element.
  EXPECT_EQ(mismatch_map(softfloat::e4m3, a, b, 2, 20).front().positions,
            (std::vector<IndexRange>{{2, 2}, {5, 5}, {8, 8}}));
}

TEST(Compare, RangesForPeople) {
  const std::vector<IndexRange> ranges{{0, 3}, {7, 7}, {9, 12}};
  EXPECT_EQ(range_text(ranges, 3), "0-3, 7, 9-12");
  EXPECT_EQ(range_text(ranges, 2), "0-3, 7 … 12 (3 ranges)");
  EXPECT_EQ(range_text({}, 2), "");
}

TEST(Compare, DifferencesInUlpOfTheLargestElementOfARow) {
  // binary16 has 2^−10 as the unit of numbers from 1 to 2. Row 0: 1.5 and +2^−24 against −2^−24.
  // Row 1: 0.25 (unit 2^−12) and three steps of it. Row 2: NaN and infinity beside 1.
  const auto a = halves({0x3e00, 0x0001, 0x3400, 0x3403, 0x7e00, 0x7c00, 0x3c00, 0x3c00});
  const auto b = halves({0x3e00, 0x8001, 0x3400, 0x3400, 0x3c00, 0x3c00, 0x7e00, 0x3c00});
  const auto rows = [&](std::size_t first, std::size_t count) {
    return max_row_ulp(binary16, std::span(a).subspan(first * 2, count * 2),
                       std::span(b).subspan(first * 2, count * 2), 2);
  };
  EXPECT_EQ(rows(0, 2), 0x1p-23 * 0x1p10);
  EXPECT_EQ(rows(2, 2), 3);
  EXPECT_EQ(rows(0, 4), 3);
  EXPECT_EQ(rows(4, 4), 0);
}

TEST(Compare, ClassesAreNumberedByTheirFirstMembers) {
  const auto one = halves({0x3c00, 0x3c01});
  const auto other = halves({0x3c00, 0x3c02});
  const std::vector<CodedResult> results{
      {binary16, one}, {binary16, other}, {binary16, one}, {bfloat16, one}, {bfloat16, one}};
  EXPECT_THAT(equality_classes(results), ElementsAre(0, 1, 0, 2, 2));
}

TEST(Compare, CodesOfValues) {
  const std::vector<float> values{1.0F, -0.0F, 448.0F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(encode_values(softfloat::e4m3, values), bytes_of({0x38, 0x80, 0x7e, 0x7f}));
  EXPECT_EQ(encode_values(bfloat16, values), halves({0x3f80, 0x8000, 0x43e0, 0x7fc0}));
  EXPECT_EQ(encode_values(binary32, std::span(values).last(1)), bytes_of({0, 0, 0xc0, 0x7f}));
  const std::vector<float> back = decode_values(bfloat16, halves({0x3f80, 0x8000, 0x43e0, 0x7f80}));
  EXPECT_THAT(back, ElementsAre(1.0F, -0.0F, 448.0F, std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(std::signbit(back[1]));
  EXPECT_EQ(code_at(bfloat16, halves({0x3f80, 0x8001}), 1), 0x8001U);
}

}  // namespace
}  // namespace kvsim
