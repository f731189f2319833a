// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// The sums of NumPy and PyTorch: trees by hand from the libraries' rules, and for many lengths
// against the oracle, which carries the rules out statement by statement.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/order.h"
#include "tests/sim/order_drawing.h"
#include "tests/sim/order_oracle.h"

namespace kvsim {
namespace {

/// Terms first, first + step, … below end, added to `start` one by one.
std::string run(const std::string& start, int first, int step, int end) {
  std::string text = start;
  for (int i = first; i < end; i += step) {
    text = text.empty() ? std::to_string(i) : "(" + text + "+" + std::to_string(i) + ")";
  }
  return text;
}

std::string plus(const std::string& left, const std::string& right) {
  return "(" + left + "+" + right + ")";
}

/// NumPy's loop with eight accumulators over terms first … first + 8 × rows − 1, then the terms up
/// to `end`.
std::string eight(int first, int rows, int end) {
  std::vector<std::string> r;
  for (int j = 0; j < 8; ++j) r.push_back(run("", first + j, 8, first + 8 * rows));
  const std::string joined =
      plus(plus(plus(r[0], r[1]), plus(r[2], r[3])), plus(plus(r[4], r[5]), plus(r[6], r[7])));
  return run(joined, first + 8 * rows, 1, end);
}

TEST(NumpyPairwise, TreesByHand) {
  EXPECT_EQ(draw("numpy-pairwise", 0), "z");
  EXPECT_EQ(draw("numpy-pairwise", 1), "0");
  EXPECT_EQ(draw("numpy-pairwise", 7), "((((((0+1)+2)+3)+4)+5)+6)");
  EXPECT_EQ(draw("numpy-pairwise", 8), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(draw("numpy-pairwise", 9), "((((0+1)+(2+3))+((4+5)+(6+7)))+8)");
  EXPECT_EQ(draw("numpy-pairwise", 17),
            "(((((0+8)+(1+9))+((2+10)+(3+11)))+(((4+12)+(5+13))+((6+14)+(7+15))))+16)");
  EXPECT_EQ(draw("numpy-pairwise", 128), eight(0, 16, 128));
  // 129 ÷ 2 = 64, a multiple of 8: 64 and 65 terms.
  EXPECT_EQ(draw("numpy-pairwise", 129), plus(eight(0, 8, 64), eight(64, 8, 129)));
  // 200 ÷ 2 = 100, rounded down to 96: 96 and 104 terms.
  EXPECT_EQ(draw("numpy-pairwise", 200), plus(eight(0, 12, 96), eight(96, 13, 200)));
  // 300: 144 and 156, of which each is cut again, into 72 + 72 and 72 + 84.
  EXPECT_EQ(draw("numpy-pairwise", 300), plus(plus(eight(0, 9, 72), eight(72, 9, 144)),
                                              plus(eight(144, 9, 216), eight(216, 10, 300))));
  EXPECT_EQ(draw("numpy-pairwise(init=zero)", 2), "(z+(0+1))");
  EXPECT_EQ(draw("numpy-pairwise(init=zero)", 1), "(z+0)");
  EXPECT_EQ(draw("split(2)/numpy-pairwise", 6), "(((0+1)+2)+((3+4)+5))");
}

TEST(TorchCascade, TreesByHand) {
  EXPECT_EQ(draw("torch-cascade(8)", 0), "z");
  // Fewer than 8: one lane. Four accumulators of one row each; what is left goes to the first one.
  EXPECT_EQ(draw("torch-cascade(8)", 3), "(((z+0)+1)+2)");
  EXPECT_EQ(draw("torch-cascade(8)", 4), "((((z+0)+(z+1))+(z+2))+(z+3))");
  EXPECT_EQ(draw("torch-cascade(8)", 7), "(((((((z+0)+4)+5)+6)+(z+1))+(z+2))+(z+3))");
  // Two lanes. One vector, fewer than four: it is left over.
  EXPECT_EQ(draw("torch-cascade(2)", 2), "((z+0)+(z+1))");
  // The left-over term comes first, the lanes follow in sequence.
  EXPECT_EQ(draw("torch-cascade(2)", 3), "(((z+2)+(z+0))+(z+1))");
  EXPECT_EQ(draw("torch-cascade(2)", 7), "(((z+6)+(((z+0)+2)+4))+(((z+1)+3)+5))");
  // Four vectors of two lanes: 0 2 4 6 are lane 0 of the four accumulators.
  EXPECT_EQ(draw("torch-cascade(2)", 8),
            "(((((z+0)+(z+2))+(z+4))+(z+6))+((((z+1)+(z+3))+(z+5))+(z+7)))");
}

// Fewer than two vectors of terms are summed as with one lane; else a vector is the sum of two.
TEST(TorchCascade, PairsByHand) {
  EXPECT_EQ(draw("torch-cascade(2,2)", 3), "(((z+0)+1)+2)");
  EXPECT_EQ(draw("torch-cascade(2,2)", 4), "((z+(0+2))+(z+(1+3)))");
  EXPECT_EQ(draw("torch-cascade(2,2)", 9), "(((z+8)+((z+(0+2))+(4+6)))+((z+(1+3))+(5+7)))");
}

// Eight registers of one lane, one register for pairs of what is left, then a single term.
TEST(TorchDot, ByHand) {
  const std::string eight = "((((z+0)+(z+4))+((z+2)+(z+6)))+(((z+1)+(z+5))+((z+3)+(z+7))))";
  EXPECT_EQ(draw("torch-dot(1)", 0), "z");
  EXPECT_EQ(draw("torch-dot(1)", 1), "(z+0)");
  EXPECT_EQ(draw("torch-dot(1)", 3), "(((z+0)+1)+2)");
  EXPECT_EQ(draw("torch-dot(1)", 8), eight);
  EXPECT_EQ(draw("torch-dot(1)", 9), "(" + eight + "+8)");
  EXPECT_EQ(draw("torch-dot(1)", 11), "((" + eight + "+((z+8)+9))+10)");
  EXPECT_EQ(draw("torch-dot(2)", 5), "((((z+0)+2)+((z+1)+3))+4)");
}

// One term before lane 0, the lanes over a multiple of four, the rest behind the join.
TEST(Lanes, HeadAndMultipleByHand) {
  EXPECT_EQ(draw("lanes(2,join=halving,tail=scalar,head=1)", 6), "((((0+1)+3)+(2+4))+5)");
  EXPECT_EQ(draw("lanes(2,join=halving,tail=scalar,multiple=4,head=1)", 8),
            "((((((0+1)+3)+(2+4))+5)+6)+7)");
  EXPECT_EQ(draw("lanes(2,join=halving,tail=scalar,head=3)", 3), "((0+1)+2)");
  EXPECT_EQ(draw("lanes(2,join=halving,tail=scalar,head=3)", 4), "(((0+1)+2)+3)");
  EXPECT_EQ(draw("lanes(2,join=sequential,tail=first-lane)", 5), "(((0+2)+4)+(1+3))");
}

/// Chunk c of accumulator u of one lane: 16 rows of four.
std::string chunk(int u, int c) { return run("z", 64 * c + u, 4, 64 * c + 64); }

TEST(TorchCascade, ChunksByHand) {
  // 17 rows of 4: the 16 rows of the first chunk have gone to level 1, the last row is added to
  // what is left, and level 1 to that.
  std::string total;
  for (int u = 0; u < 4; ++u) {
    const std::string sum = plus(run("z", 64 + u, 4, 68), chunk(u, 0));
    total = total.empty() ? sum : plus(total, sum);
  }
  EXPECT_EQ(draw("torch-cascade(1)", 68), total);

  // 18 chunks of 16 rows: after 16 of them level 1 is emptied into level 2, the other two are on
  // level 1. No row is left over, but two terms are.
  total.clear();
  for (int u = 0; u < 4; ++u) {
    std::string level2 = chunk(u, 0);
    for (int c = 1; c < 16; ++c) level2 = plus(level2, chunk(u, c));
    const std::string level1 = plus(chunk(u, 16), chunk(u, 17));
    const std::string sum = plus(level1, level2);
    total = u == 0 ? run(sum, 1152, 1, 1154) : plus(total, sum);
  }
  EXPECT_EQ(draw("torch-cascade(1)", 1154), total);
}

TEST(LibrarySums, FollowTheRulesForEveryLength) {
  for (const char* word : {"numpy-pairwise", "torch-cascade", "paired", "torch-dot"}) {
    for (const std::int64_t width : {1, 4, 8, 16}) {
      order_oracle::Spec spec{.word = word};
      if (spec.word != "numpy-pairwise") spec.numbers = {width};
      if (spec.word == "paired") spec = {.word = "torch-cascade", .numbers = {width, 2}};
      if (spec.word == "numpy-pairwise" && width > 1) continue;
      for (std::int64_t n = 0; n <= 2500; n += n < 170 ? 1 : 97) {
        ASSERT_EQ(draw(order_oracle::text(spec), n),
                  order_oracle::draw(order_oracle::build({spec}, n)))
            << order_oracle::text(spec) << " over " << n;
      }
    }
  }
}

// Level 3 begins to fill at 16³ rows. Heights tell it apart: a chunk of 16, then up to 15 additions
// on each of two levels, and so on.
TEST(LibrarySums, FourthLevelByHeight) {
  const auto height_of = [](std::int64_t n) {
    return height(parse_order("torch-cascade(1)").value(), n);
  };
  // 4096 rows of 4: 15 additions in a chunk, 15 on level 1, 15 on level 2; then the accumulators.
  EXPECT_EQ(height_of(4 * 4096), 15 + 15 + 15 + 3);
  // Twice that: one more on level 3.
  EXPECT_EQ(height_of(2 * 4 * 4096), 15 + 15 + 15 + 1 + 3);
  // 2^20 rows of 4: chunks of 2^(20 ÷ 4) = 32 rows, 2^15 of them: levels of 32, 32 and 32.
  EXPECT_EQ(height_of(4 << 20), 31 + 31 + 31 + 31 + 3);
}

}  // namespace
}  // namespace kvsim
