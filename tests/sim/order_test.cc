// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// What every item of an order means: trees drawn by hand from the definitions, and random nested
// orders against trees that the oracle builds from lists.

#include "sim/order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/order_walk.h"
#include "tests/sim/order_drawing.h"
#include "tests/sim/order_oracle.h"
#include "tests/sim/random_orders.h"

namespace kvsim {
namespace {

struct DrawnTree {
  std::string_view order;
  std::int64_t n;
  std::string_view tree;
};

constexpr DrawnTree drawn_trees[] = {
    {"sequential", 0, "z"},
    {"sequential", 1, "0"},
    {"sequential", 4, "(((0+1)+2)+3)"},
    {"sequential(init=zero)", 0, "z"},
    {"sequential(init=zero)", 2, "((z+0)+1)"},
    {"reverse", 1, "0"},
    {"reverse", 3, "((2+1)+0)"},
    {"reverse(init=zero)", 2, "((z+1)+0)"},
    {"reverse/pairwise", 4, "((3+2)+(1+0))"},
    {"reverse(init=zero)/pairwise", 2, "(z+(1+0))"},
    {"reverse(init=zero)/pairwise", 1, "(z+0)"},
    {"reverse/reverse", 3, "((0+1)+2)"},
    {"perm(3,0,2,1)", 4, "(((3+0)+2)+1)"},
    {"perm(3,0,2,1)/pairwise", 4, "((3+0)+(2+1))"},
    {"perm(1,2,0)/perm(2,0,1)", 3, "((0+1)+2)"},
    {"reverse/perm(1,2,0)", 3, "((1+0)+2)"},
    {"perm(1,2,0)/reverse", 3, "((0+2)+1)"},
    {"perm(1,0,init=zero)", 2, "((z+1)+0)"},
    {"perm(3,0,2,1)/lanes(2,1)", 4, "((3+2)+(0+1))"},
    {"exact", 0, "z"},
    {"exact", 1, "exact(0)"},
    {"exact", 3, "exact(0,1,2)"},
    {"exact(init=zero)", 2, "exact(z,0,1)"},
    {"reverse/exact", 3, "exact(2,1,0)"},
    {"pairwise", 1, "0"},
    {"pairwise", 2, "(0+1)"},
    {"pairwise", 3, "((0+1)+2)"},
    {"pairwise", 5, "(((0+1)+(2+3))+4)"},
    {"pairwise", 6, "(((0+1)+(2+3))+(4+5))"},
    {"pairwise", 7, "(((0+1)+(2+3))+((4+5)+6))"},
    {"pairwise", 8, "(((0+1)+(2+3))+((4+5)+(6+7)))"},
    {"pairwise(init=zero)", 1, "(z+0)"},
    {"pairwise(init=zero)", 2, "(z+(0+1))"},
    {"halving", 1, "0"},
    {"halving", 2, "(0+1)"},
    {"halving", 3, "((0+2)+1)"},
    {"halving", 4, "((0+2)+(1+3))"},
    {"halving", 5, "(((0+3)+2)+(1+4))"},
    {"halving", 6, "(((0+3)+(2+5))+(1+4))"},
    {"halving", 7, "(((0+4)+(2+6))+((1+5)+3))"},
    {"halving", 8, "(((0+4)+(2+6))+((1+5)+(3+7)))"},
    {"halving(init=zero)", 3, "(z+((0+2)+1))"},
    // 11 elements: accumulator 0 gets 0–3 and 8–10, accumulator 1 gets 4–7.
    {"lanes(4,2)", 11, "((((0+8)+4)+((1+9)+5))+(((2+10)+6)+(3+7)))"},
    {"lanes(4,2,join=halving)", 11, "((((0+8)+4)+((2+10)+6))+(((1+9)+5)+(3+7)))"},
    {"lanes(4,2,join=sequential)", 11, "(((((0+8)+4)+((1+9)+5))+((2+10)+6))+(3+7))"},
    {"lanes(4,2,tail=scalar)", 11, "((((((0+4)+(1+5))+((2+6)+(3+7)))+8)+9)+10)"},
    {"lanes(4,2,tail=scalar-first)", 11, "(((8+9)+10)+(((0+4)+(1+5))+((2+6)+(3+7))))"},
    {"lanes(4,2,tail=scalar-first)", 9, "(8+(((0+4)+(1+5))+((2+6)+(3+7))))"},
    {"lanes(4,2,tail=scalar)", 8, "(((0+4)+(1+5))+((2+6)+(3+7)))"},
    {"lanes(4,2,tail=scalar)", 3, "((0+1)+2)"},
    {"lanes(4,2,tail=scalar-first)", 3, "((0+1)+2)"},
    {"lanes(4,2,tail=scalar,init=zero)", 3, "(((z+0)+1)+2)"},
    {"lanes(2,1,tail=scalar,init=zero)", 3, "(((z+0)+(z+1))+2)"},
    {"lanes(2,1,tail=scalar-first,init=zero)", 3, "((z+2)+((z+0)+(z+1)))"},
    {"lanes(4,2)", 3, "((0+1)+2)"},
    {"lanes(4,2)", 5, "(((0+4)+1)+(2+3))"},
    {"lanes(1,3)", 5, "(((0+3)+(1+4))+2)"},
    {"lanes(3)", 4, "(((0+3)+1)+2)"},
    {"lanes(5,1,join=halving)", 5, "(((0+3)+2)+(1+4))"},
    {"lanes(2,2,init=zero)", 5, "((((z+0)+4)+(z+2))+((z+1)+(z+3)))"},
    {"lanes(2,1,init=zero)/pairwise", 4, "((z+(0+2))+(z+(1+3)))"},
    {"lanes(2,1)/reverse", 6, "(((4+2)+0)+((5+3)+1))"},
    {"lanes(2,1)/exact", 5, "(exact(0,2,4)+exact(1,3))"},
    {"lanes(2,1)/exact", 2, "(exact(0)+exact(1))"},
    {"lanes(2,1,tail=scalar)/exact", 3, "((exact(0)+exact(1))+2)"},
    {"lanes(2,1,tail=scalar)/exact", 1, "0"},
    {"blocks(2)/lanes(2,1,tail=scalar)/exact", 3, "((exact(0)+exact(1))+2)"},
    {"lanes(2,2)/blocks(2)", 12, "((((0+4)+8)+((2+6)+10))+(((1+5)+9)+((3+7)+11)))"},
    {"reverse/lanes(2,1)", 5, "(((4+2)+0)+(3+1))"},
    {"blocks(3)", 3, "((0+1)+2)"},
    {"blocks(3)", 8, "((((0+1)+2)+((3+4)+5))+(6+7))"},
    {"blocks(3)", 7, "((((0+1)+2)+((3+4)+5))+6)"},
    {"blocks(1)", 3, "((0+1)+2)"},
    {"blocks(3,init=zero)", 4, "((z+((0+1)+2))+3)"},
    {"blocks(2)/sequential(init=zero)", 3, "(((z+0)+1)+(z+2))"},
    {"blocks(4)/pairwise", 6, "(((0+1)+(2+3))+(4+5))"},
    {"blocks(4)/perm(3,0,2,1)", 8, "((((3+0)+2)+1)+(((7+4)+6)+5))"},
    {"split(3)", 7, "((((0+1)+2)+((3+4)+5))+6)"},
    {"split(4)", 5, "(((0+1)+(2+3))+4)"},  // the fourth part is empty
    {"split(9)", 3, "((0+1)+2)"},
    {"split(2,init=zero)", 4, "((z+(0+1))+(2+3))"},
    {"split(2)/lanes(2,1)", 8, "(((0+2)+(1+3))+((4+6)+(5+7)))"},
    {"split(2)/blocks(2)/reverse", 8, "(((1+0)+(3+2))+((5+4)+(7+6)))"},
    {"reverse/split(2)/halving", 6, "(((5+3)+4)+((2+0)+1))"},
    // Absent partners are skipped; the width stays 4, and 8 for six lanes.
    {"lanes(4,1,join=butterfly)", 4, "((0+2)+(1+3))"},
    {"lanes(4,1,join=butterfly)", 3, "((0+2)+1)"},
    {"lanes(4,1,join=butterfly)", 2, "(0+1)"},
    {"lanes(4,1,join=butterfly)", 9, "((((0+4)+8)+(2+6))+((1+5)+(3+7)))"},
    {"lanes(6,1,join=butterfly)", 6, "(((0+4)+2)+((1+5)+3))"},
    {"lanes(8,1,join=butterfly)", 8, "(((0+4)+(2+6))+((1+5)+(3+7)))"},
    {"lanes(8,1,join=butterfly)", 5, "(((0+4)+2)+(1+3))"},
    {"lanes(2,1,join=butterfly,tail=scalar)", 3, "((0+1)+2)"},
    {"blocks(2,merge=reverse)", 5, "((4+(2+3))+(0+1))"},
    {"blocks(2,merge=reverse,init=zero)", 4, "((z+(2+3))+(0+1))"},
    {"blocks(2,merge=pairwise)", 6, "(((0+1)+(2+3))+(4+5))"},
    {"blocks(1,merge=halving)", 5, "(((0+3)+2)+(1+4))"},
    {"blocks(1,merge=halving,init=zero)", 2, "(z+(0+1))"},
    {"blocks(1,merge=butterfly)", 5, "(((0+4)+2)+(1+3))"},  // 5 blocks: width 8
    {"split(4,merge=butterfly)", 4, "((0+2)+(1+3))"},
    {"split(4,merge=butterfly)", 2, "(0+1)"},  // parts 2 and 3 are absent
    {"split(6,merge=butterfly)", 5, "(((0+4)+2)+(1+3))"},
    {"split(3,multiple=2)", 9, "(((((0+1)+2)+3)+(((4+5)+6)+7))+8)"},
    {"split(2,multiple=8)", 5, "((((0+1)+2)+3)+4)"},
    {"split(2,partials=bf16)", 3, "(bfloat16((0+1))+bfloat16(2))"},
    {"split(2,running=bf16)", 3, "bfloat16((bfloat16((0+1))+2))"},
    {"split(1,running=bf16)", 2, "bfloat16((0+1))"},
    {"split(2,partials=fp16,running=bf16)", 2, "bfloat16((bfloat16(binary16(0))+binary16(1)))"},
    {"split(2,running=bf16,init=zero)", 2, "bfloat16((bfloat16((z+0))+1))"},
    {"split(4,merge=pairwise,running=bf16)", 4, "bfloat16((bfloat16((0+1))+bfloat16((2+3))))"},
    {"split(1,merge=pairwise,running=bf16)", 2, "(0+1)"},  // no merge
    {"split(2,merge=reverse,partials=bf16)/exact", 4,
     "(bfloat16(exact(2,3))+bfloat16(exact(0,1)))"},
    {"split(2)/split(2,partials=bf16)", 4, "((bfloat16(0)+bfloat16(1))+(bfloat16(2)+bfloat16(3)))"},
    {"mma(v100.f16.f32)", 3, "mma(0,1,2)"},
    {"split(2)/mma(v100.f16.f32)", 5, "(mma(0,1,2)+mma(3,4))"},
    {"lanes(2,1)/mma(v100.f16.f32)", 5, "(mma(0,2,4)+mma(1,3))"},
    {"perm(2,0,1)/mma(v100.f16.f32)", 3, "mma(2,0,1)"},
    {"lanes(2,1,init=zero)/mma(v100.f16.f32)", 2, "((z+mma(0))+(z+mma(1)))"},
};

TEST(Order, HandDrawnTrees) {
  for (const DrawnTree& expected : drawn_trees) {
    EXPECT_EQ(draw(std::string(expected.order), expected.n), expected.tree)
        << expected.order << " over " << expected.n;
  }
}

TEST(Order, RandomNestingsMatchTheSlowTree) {
  std::mt19937_64 random(7);
  std::set<std::string> words;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() % 65);
    const std::vector<order_oracle::Spec> specs = order_oracle::random_order(random, n);
    const std::string text = order_oracle::text(specs);
    for (const order_oracle::Spec& spec : specs) words.insert(spec.word);
    ASSERT_EQ(draw(text, n), order_oracle::draw(order_oracle::build(specs, n)))
        << text << " over " << n;
  }
  EXPECT_EQ(words.size(), 12U);  // no item was left out
}

TEST(Order, HeightMatchesTheSlowTree) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 10000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() % 65);
    const std::vector<order_oracle::Spec> specs = order_oracle::random_order(random, n);
    const Result<Order> order = parse_order(order_oracle::text(specs));
    ASSERT_TRUE(order);
    ASSERT_EQ(height(*order, n), order_oracle::height(order_oracle::build(specs, n)))
        << to_string(*order) << " over " << n;
  }
}

TEST(Order, HeightFollowsTheFormulas) {
  const auto height_of = [](const char* text, std::int64_t n) {
    return height(parse_order(text).value(), n);
  };
  EXPECT_EQ(height_of("sequential", 0), 0);
  EXPECT_EQ(height_of("sequential", 1000), 999);
  EXPECT_EQ(height_of("sequential(init=zero)", 1000), 999);
  EXPECT_EQ(height_of("pairwise", 1024), 10);
  EXPECT_EQ(height_of("pairwise", 1025), 11);
  EXPECT_EQ(height_of("halving", 1025), 11);
  EXPECT_EQ(height_of("blocks(32)", 1024), 31 + 31);
  EXPECT_EQ(height_of("lanes(16,2)", 1024), 31 + 1 + 4);
  EXPECT_EQ(height_of("lanes(16,2,join=sequential)", 1024), 31 + 1 + 15);
  EXPECT_EQ(height_of("split(4)/lanes(16,2)", 1024), 7 + 1 + 4 + 3);
  EXPECT_EQ(height_of("exact", 1024), 1);
  EXPECT_EQ(height_of("exact", 1), 0);
}

TEST(Order, LargeSizesDoNotOverflow) {
  const Result<Order> order =
      parse_order("lanes(1048576,1048576)/lanes(1048576,1048576)/lanes(1048576,1048576)");
  ASSERT_TRUE(order);
  EXPECT_EQ(height(*order, 100), 7);  // 100 lanes of one term, joined in pairs
  DrawOps ops;
  EXPECT_EQ(walk(*order, 3, ops), "((0+1)+2)");
}

TEST(Order, CheckLengthNamesThePermAndTheRange) {
  const auto message = [](const char* text, std::int64_t n) {
    const Result<bool> fits = check_length(parse_order(text).value(), n);
    return fits ? std::string("fits") : fits.error().message;
  };
  EXPECT_EQ(message("sequential", 7), "fits");
  EXPECT_EQ(message("perm(1,0)", 0), "fits");
  EXPECT_EQ(message("perm(1,0)", 2), "fits");
  EXPECT_EQ(message("blocks(2)/perm(1,0)", 6), "fits");
  EXPECT_EQ(message("split(3)/perm(1,0)", 6), "fits");
  EXPECT_EQ(message("lanes(4,2)/perm(1,0)", 16), "fits");
  EXPECT_EQ(message("lanes(4,2,tail=scalar)/perm(1,0)", 19), "fits");
  EXPECT_EQ(message("lanes(4,2,tail=scalar)/perm(1,0)", 3), "fits");
  EXPECT_EQ(
      message("perm(1,0)", 3),
      "order item 1 of 1 over 3 terms: perm has 2 entries but meets a range of 3; accepted: a "
      "perm of exactly the range's length");
  EXPECT_EQ(message("perm(0)", 2),
            "order item 1 of 1 over 2 terms: perm has 1 entry but meets a range of 2; accepted: a "
            "perm of exactly the range's length");
  EXPECT_EQ(
      message("blocks(2)/perm(1,0)", 5),
      "order item 2 of 2 over 5 terms: perm has 2 entries but meets a range of 1; accepted: a "
      "perm of exactly the range's length");
  EXPECT_EQ(
      message("lanes(4,2)/perm(1,0)", 17),
      "order item 2 of 2 over 17 terms: perm has 2 entries but meets a range of 3; accepted: a "
      "perm of exactly the range's length");
  EXPECT_EQ(
      message("lanes(4,2)/perm(1,0)", 15),
      "order item 2 of 2 over 15 terms: perm has 2 entries but meets a range of 1; accepted: a "
      "perm of exactly the range's length");
  EXPECT_EQ(message("sequential", -1), "length -1: accepted: 0 or more");
}

TEST(Order, CheckLengthAgreesWithTheRangesThatPermsMeet) {
  // Replace each perm by one of another length: the check must refuse every one that is reached.
  std::mt19937_64 random(13);
  int refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() % 65);
    std::vector<order_oracle::Spec> specs = order_oracle::random_order(random, n);
    const std::size_t at = random() % specs.size();
    if (specs[at].word != "perm") continue;
    specs[at].numbers.push_back(static_cast<std::int64_t>(specs[at].numbers.size()));
    const Result<Order> order = parse_order(order_oracle::text(specs));
    ASSERT_TRUE(order);
    EXPECT_EQ(check_length(*order, n).has_value(), n == 0) << to_string(*order) << " over " << n;
    ++refused;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace kvsim
