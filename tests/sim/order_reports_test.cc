// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Sums that users reported, with their numbers: which orders give which of two answers, and where
// a narrow accumulator stops counting.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

std::vector<Bits> codes(const Format& format, std::vector<std::string_view> numbers) {
  std::vector<Bits> bits;
  for (const std::string_view number : numbers) {
    bits.push_back(softfloat::parse_number(format, number).value().bits);
  }
  return bits;
}

// pytorch/pytorch issue 151658: a float16 dot product of four numbers that a matrix of one row and
// one of two rows give differently.
class FourTerms : public testing::Test {
 protected:
  static constexpr Bits lo = 0x2657;  // 0.0247650146484375
  static constexpr Bits hi = 0x2658;  // 0.0247802734375

  /// The sum with a binary32 accumulator, rounded to binary16.
  static Bits result(const std::string& order) {
    const std::vector<Bits> w = codes(softfloat::binary16, {"-0.60205078125", "0.86572265625",
                                                            "0.392333984375", "0.132080078125"});
    const std::vector<Bits> x = codes(softfloat::binary16, {"-0.68701171875", "-0.82177734375",
                                                            "0.78271484375", "0.11737060546875"});
    const Bits sum = sum_products(parse_order(order).value(), Product::rounded, softfloat::binary16,
                                  softfloat::binary32, w, x)
                         .bits;
    return softfloat::convert(softfloat::binary16, softfloat::binary32, sum).bits;
  }
};

TEST_F(FourTerms, TheTwoAnswersAreTheReportedOnes) {
  EXPECT_EQ(codes(softfloat::binary16, {"0.0247650146484375", "0.0247802734375"}),
            (std::vector<Bits>{lo, hi}));
}

TEST_F(FourTerms, LinearOrdersThatAddTheLastTermLastGiveLo) {
  std::array<int, 4> order = {0, 1, 2, 3};
  int low = 0;
  do {
    const std::string text = "perm(" + std::to_string(order[0]) + "," + std::to_string(order[1]) +
                             "," + std::to_string(order[2]) + "," + std::to_string(order[3]) + ")";
    const Bits sum = result(text);
    EXPECT_EQ(sum, order[3] == 3 ? lo : hi) << text;
    low += sum == lo ? 1 : 0;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(low, 6);
  EXPECT_EQ(result("sequential"), lo);
  EXPECT_EQ(result("reverse"), hi);
}

TEST_F(FourTerms, PairwiseTreesGiveHi) {
  for (const char* order : {"pairwise", "perm(0,2,1,3)/pairwise", "perm(0,3,1,2)/pairwise"}) {
    EXPECT_EQ(result(order), hi) << order;
  }
}

TEST_F(FourTerms, FusedAndExactSumsGiveLo) {
  for (const char* order :
       {"mma(v100.f16.f32)", "mma(a100.f16.f32)", "mma(h100.f16.f32)", "exact"}) {
    EXPECT_EQ(result(order), lo) << order;
  }
}

// pytorch/pytorch issue 83863: the product of matrices of ones with a bfloat16 accumulator.
double sum_of_ones(const Format& format, std::size_t count) {
  const Bits one = codes(format, {"1"}).front();
  const std::vector<Bits> ones(count, one);
  const Bits sum =
      sum_products(parse_order("sequential").value(), Product::rounded, format, format, ones, ones)
          .bits;
  return softfloat::to_double(format, sum);
}

TEST(SumOfOnes, StopsWhereTheNextIntegerIsNoNumber) {
  for (const std::size_t count : {128U, 256U}) {
    EXPECT_EQ(sum_of_ones(softfloat::bfloat16, count), static_cast<double>(count));
  }
  for (const std::size_t count : {257U, 1024U}) {
    EXPECT_EQ(sum_of_ones(softfloat::bfloat16, count), 256);
  }
  for (const std::size_t count : {128U, 256U, 257U, 1024U, 2048U}) {
    EXPECT_EQ(sum_of_ones(softfloat::binary16, count), static_cast<double>(count));
  }
  EXPECT_EQ(sum_of_ones(softfloat::binary16, 4096), 2048);
  for (const std::size_t count : {128U, 256U, 257U, 1024U, 4096U}) {
    EXPECT_EQ(sum_of_ones(softfloat::binary32, count), static_cast<double>(count));
  }
}

}  // namespace
}  // namespace kvsim
