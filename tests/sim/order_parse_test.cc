// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sim/order.h"
#include "tests/sim/order_oracle.h"
#include "tests/sim/random_orders.h"

namespace kvsim {
namespace {

std::string canonical(std::string_view text) {
  const Result<Order> order = parse_order(text);
  return order ? to_string(*order) : "error: " + order.error().message;
}

TEST(OrderText, CanonicalText) {
  const struct {
    std::string_view given;
    std::string_view canonical;
  } cases[] = {
      {"sequential", "sequential"},
      {"sequential()", "sequential"},
      {"sequential( init = zero )", "sequential(init=zero)"},
      {"\t reverse \n", "reverse"},
      {"reverse/sequential", "reverse"},
      {"reverse/sequential(init=zero)", "reverse/sequential(init=zero)"},
      {"perm( 3,0 , 2,1 )", "perm(3,0,2,1)"},
      {"perm(00,001)", "perm(0,1)"},
      {"perm(0,init=zero)/exact", "perm(0,init=zero)/exact"},
      {"lanes(16)", "lanes(16,1)"},
      {"lanes(16,join=halving)", "lanes(16,1,join=halving)"},
      {"lanes(16,2,join=pairwise)", "lanes(16,2)"},
      {"lanes(16,2,tail=masked,join=pairwise)", "lanes(16,2)"},
      {"lanes(16,2,init=zero,tail=scalar-first,join=sequential)",
       "lanes(16,2,join=sequential,tail=scalar-first,init=zero)"},
      {"lanes(16,2,tail=scalar)", "lanes(16,2,tail=scalar)"},
      {" split ( 4 ) / lanes ( 16 , 2 ) ", "split(4)/lanes(16,2)"},
      {"blocks(1048576)", "blocks(1048576)"},
      {"blocks(64)/halving(init=zero)", "blocks(64)/halving(init=zero)"},
      {"split(2)/pairwise", "split(2)/pairwise"},
      {"split(4,multiple=1,merge=sequential)", "split(4)"},
      {"split(4, running=bf16, partials=fp16, merge=butterfly, multiple=64, init=zero)",
       "split(4,multiple=64,merge=butterfly,partials=binary16,running=bfloat16,init=zero)"},
      {"blocks(128,merge=reverse,partials=BF16)", "blocks(128,merge=reverse,partials=bfloat16)"},
      {"lanes(32,1,join=butterfly)", "lanes(32,1,join=butterfly)"},
      {"numpy-pairwise", "numpy-pairwise"},
      {"lanes(4)/numpy-pairwise(init=zero)", "lanes(4,1)/numpy-pairwise(init=zero)"},
      {"torch-cascade( 8 )", "torch-cascade(8)"},
      {"torch-cascade(8 , 1)", "torch-cascade(8)"},
      {"torch-cascade(8, 2)", "torch-cascade(8,2)"},
      {"torch-dot( 8 )", "torch-dot(8)"},
      {"lanes(4,head=3,multiple=8,tail=scalar)", "lanes(4,1,tail=scalar,multiple=8,head=3)"},
      {"blocks(128)/mma(h100.wgmma.e4m3.f32)", "blocks(128)/mma(h100.wgmma.e4m3.f32)"},
      {" mma ( a100.f16.f16 ) ", "mma(a100.mma.f16.f16)"},  // another name of the unit
      {"mma(a100.mma.f16.f16(zero_exponent=-20))", "mma(a100.mma.f16.f16(zero_exponent=-20))"},
      {"mma(a100.mma.f16.f16(zero_exponent=-21))", "mma(a100.mma.f16.f16)"},  // what it is anyway
  };
  for (const auto& c : cases) EXPECT_EQ(canonical(c.given), c.canonical) << c.given;
  EXPECT_EQ(to_string(Order{}), "sequential");
}

TEST(OrderText, FieldsHoldWhatTheTextSays) {
  const Result<Order> order =
      parse_order("split(4)/lanes(16,2,join=halving,tail=scalar-first)/perm(1,0,init=zero)");
  ASSERT_TRUE(order);
  ASSERT_EQ(order->items.size(), 3U);
  EXPECT_EQ(order->items[0], (OrderItem{.kind = OrderKind::split, .size = 4, .permutation = {}}));
  EXPECT_EQ(order->items[1], (OrderItem{.kind = OrderKind::lanes,
                                        .size = 16,
                                        .accumulators = 2,
                                        .join = LaneJoin::halving,
                                        .tail = LaneTail::scalar_first,
                                        .permutation = {}}));
  EXPECT_EQ(order->items[2],
            (OrderItem{.kind = OrderKind::permutation, .init_zero = true, .permutation = {1, 0}}));
}

TEST(OrderText, RandomOrdersRoundTrip) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 5000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() % 65);
    std::vector<order_oracle::Spec> specs = order_oracle::random_order(random, n);
    const std::string given = order_oracle::text(specs);
    const Result<Order> order = parse_order(given);
    ASSERT_TRUE(order) << given << ": " << order.error().message;
    if (specs.size() > 1 && specs.back().word == "sequential" && !specs.back().init) {
      specs.pop_back();
    }
    const std::string printed = to_string(*order);
    ASSERT_EQ(printed, order_oracle::text(specs));
    const Result<Order> again = parse_order(printed);
    ASSERT_TRUE(again) << printed;
    ASSERT_EQ(*again, *order) << printed;
  }
}

constexpr std::string_view kinds =
    "sequential, reverse, perm, exact, pairwise, halving, lanes, blocks, split, mma, "
    "numpy-pairwise, torch-cascade, torch-dot";

TEST(OrderText, EveryErrorNamesPositionFindAndChoice) {
  const std::string names(kinds);
  const std::string perm = "the numbers 0 to n-1 in any order, as in perm(3,0,2,1)";
  const struct {
    std::string given;
    std::string message;
  } cases[] = {
      {"", "order position 1: found the end; accepted: " + names},
      {"  ", "order position 3: found the end; accepted: " + names},
      {"/", "order position 1: found '/'; accepted: " + names},
      {"lane(4)", "order position 1: found 'lane'; accepted: " + names + " (did you mean lanes?)"},
      {"split(4)/squential",
       "order position 10: found 'squential'; accepted: " + names + " (did you mean sequential?)"},
      {"Pairwise",
       "order position 1: found 'Pairwise'; accepted: " + names + " (did you mean pairwise?)"},
      {"xyzzy", "order position 1: found 'xyzzy'; accepted: " + names},
      {"a\nb", "order position 1: found 'a'; accepted: " + names},
      {"\n\x01", "order position 2: found '\\x01'; accepted: " + names},
      {"reverse/", "order position 9: found the end; accepted: " + names},
      {"reverse//exact", "order position 9: found '/'; accepted: " + names},
      {"sequential exact", "order position 12: found 'exact'; accepted: '(' or the end"},
      {"reverse exact", "order position 9: found 'exact'; accepted: '(', '/' or the end"},
      {"reverse()exact", "order position 10: found 'exact'; accepted: '/' or the end"},
      {"exact())", "order position 8: found ')'; accepted: the end"},
      {"pairwise/lanes(4,1)",
       "order position 9: found '/'; accepted: the end, because pairwise takes nothing inside"},
      {"halving(init=zero)/exact",
       "order position 19: found '/'; accepted: the end, because halving takes nothing inside"},
      {"sequential/exact",
       "order position 11: found '/'; accepted: the end, because sequential takes nothing inside"},
      {"exact/sequential",
       "order position 6: found '/'; accepted: the end, because exact takes nothing inside"},
      {"blocks",
       "order position 7: found the end; accepted: '(' and the terms of a block, 1 to "
       "1048576"},
      {"blocks/exact",
       "order position 7: found '/'; accepted: '(' and the terms of a block, 1 to "
       "1048576"},
      {"blocks()", "order position 8: found ')'; accepted: the terms of a block, 1 to 1048576"},
      {"blocks(0)", "order position 8: found '0'; accepted: the terms of a block, 1 to 1048576"},
      {"blocks(-4)", "order position 8: found '-4'; accepted: the terms of a block, 1 to 1048576"},
      {"blocks(1048577)",
       "order position 8: found '1048577'; accepted: the terms of a block, 1 to 1048576"},
      {"blocks(99999999999999999999999999)",
       "order position 8: found '999999999999999999999999...'; accepted: the terms of a block, 1 "
       "to "
       "1048576"},
      {"blocks(8x)", "order position 8: found '8x'; accepted: the terms of a block, 1 to 1048576"},
      {"blocks(4,4)", "order position 10: found '4'; accepted: merge, partials, running, init"},
      {"blocks(init=zero)",
       "order position 8: found 'init'; accepted: the terms of a block, 1 to 1048576"},
      {"split()", "order position 7: found ')'; accepted: the number of parts, 1 to 1048576"},
      {"split(4", "order position 8: found the end; accepted: ',' or ')'"},
      {"split(4 5)", "order position 9: found '5'; accepted: ',' or ')'"},
      {"split(4.5)", "order position 8: found '.'; accepted: ',' or ')'"},
      {"lanes(x)", "order position 7: found 'x'; accepted: the number of lanes, 1 to 1048576"},
      {"lanes(4,0)",
       "order position 9: found '0'; accepted: the number of accumulators, 1 to 1048576"},
      {"lanes(4,)", "order position 9: found ')'; accepted: join, tail, multiple, head, init"},
      {"lanes(4,2,2)", "order position 11: found '2'; accepted: join, tail, multiple, head, init"},
      {"lanes(4,jion=halving)",
       "order position 9: found 'jion'; accepted: join, tail, multiple, head, init (did you mean "
       "join?)"},
      {"lanes(4,join)", "order position 13: found ')'; accepted: '=' after join"},
      {"lanes(4,join=halvin)",
       "order position 14: found 'halvin'; accepted: pairwise, halving, sequential, butterfly (did "
       "you mean halving?)"},
      {"lanes(4,tail=none)",
       "order position 14: found 'none'; accepted: masked, scalar, scalar-first, first-lane"},
      {"lanes(4,tail=scalar,tail=masked)",
       "order position 21: found 'tail'; accepted: tail only once in an item"},
      {"lanes(4,join=halving,2)",
       "order position 22: found '2'; accepted: join, tail, multiple, head, init"},
      {"reverse(init=one)", "order position 14: found 'one'; accepted: zero"},
      {"reverse(join=halving)", "order position 9: found 'join'; accepted: init"},
      {"perm", "order position 5: found the end; accepted: '(' and " + perm},
      {"perm()", "order position 6: found ')'; accepted: " + perm},
      {"perm(init=zero)", "order position 6: found 'init'; accepted: " + perm},
      {"perm(0,4096)", "order position 8: found '4096'; accepted: a number from 0 to 4095"},
      {"perm(0,1b)", "order position 8: found '1b'; accepted: a number from 0 to 4095"},
      {"perm(0,2,1,5)",
       "order position 12: found '5'; accepted: each of 0 to 3 once, for a perm of 4 entries"},
      {"perm(0,2,1,2)",
       "order position 12: found '2'; accepted: each of 0 to 3 once, for a perm of 4 entries"},
      {"perm(1)",
       "order position 6: found '1'; accepted: each of 0 to 0 once, for a perm of 1 entry"},
      {"torch-cascade",
       "order position 14: found the end; accepted: '(' and the number of lanes, 1 to 1048576"},
      {"torch-cascade()",
       "order position 15: found ')'; accepted: the number of lanes, 1 to 1048576"},
      {"torch-cascade(8,8)",
       "order position 17: found '8'; accepted: 1, or 2 for 16-bit numbers, which are added in "
       "pairs"},
      {"torch-cascade(8,2,2)", "order position 19: found '2'; accepted: ')'"},
      {"torch-cascade(8;2)", "order position 16: found ';'; accepted: ',' or ')'"},
      {"torch-dot(8,2)", "order position 12: found ','; accepted: ')'"},
      {"torch-dot(8)/exact",
       "order position 13: found '/'; accepted: the end, because torch-dot takes nothing inside"},
      {"lanes(4,head=1)/exact",
       "order position 16: found '/'; accepted: the end, because lanes with a head takes nothing "
       "inside"},
      {"lanes(4,tail=first-lane)/exact",
       "order position 25: found '/'; accepted: the end, because lanes with tail=first-lane takes "
       "nothing inside"},
      {"lanes(4,head=0)",
       "order position 14: found '0'; accepted: the first terms, for lane 0, 1 to 1048576"},
      {"lanes(4,multiple=8)",
       "order position 19: found ')'; accepted: ',tail=scalar', ',tail=scalar-first' or "
       "',tail=first-lane' beside multiple"},
      {"torch-cascade(8)/exact",
       "order position 17: found '/'; accepted: the end, because torch-cascade takes nothing "
       "inside"},
      {"numpy-pairwise(8)", "order position 16: found '8'; accepted: init"},
      {"split(4,multiple=0)",
       "order position 18: found '0'; accepted: the terms that a part is a multiple of, 1 to "
       "1048576"},
      {"split(4,merge=tree)",
       "order position 15: found 'tree'; accepted: sequential, reverse, pairwise, halving, "
       "butterfly"},
      {"blocks(4,multiple=2)",
       "order position 10: found 'multiple'; accepted: merge, partials, running, init"},
      {"split(4,partials=bf61)",
       "order position 18: found 'bf61'; accepted: a format with a sign and a zero (did you mean "
       "bf16?)"},
      {"split(4,partials=e8m0)",
       "order position 18: found 'e8m0'; accepted: a format with a sign and a zero, as binary16 or "
       "bfloat16"},
      {"split(4,running=)",
       "order position 17: found ')'; accepted: a format with a sign and a zero, as binary16 or "
       "bfloat16"},
      {"mma",
       "order position 4: found the end; accepted: '(' and a matrix unit, as in "
       "mma(h100.f16.f32)"},
      {"mma()", "order position 5: found ')'; accepted: a matrix unit, as in mma(h100.f16.f32)"},
      {"mma(h100.f16.f32", "order position 17: found the end; accepted: ')'"},
      {"mma(h100.f16.f32)/exact",
       "order position 18: found '/'; accepted: the end, because mma takes nothing inside"},
      {"mma(b200.tcgen05.nvf4.f32)",
       "order position 5: unit b200.tcgen05.nvf4.f32 needs block scales, which an order does not "
       "have; accepted: a unit without them"},
      {"blocks(2)/perm(0,1)/perm(0,1,1)",
       "order position 30: found '1'; accepted: each of 0 to 2 once, for a perm of 3 entries"},
  };
  for (const auto& c : cases) {
    const Result<Order> order = parse_order(c.given);
    ASSERT_FALSE(order) << c.given;
    EXPECT_EQ(order.error().message, c.message) << c.given;
    EXPECT_EQ(order.error().kind, ErrorKind::usage) << c.given;
  }
}

TEST(OrderText, Limits) {
  std::string deep = "reverse";
  for (std::size_t i = 1; i < max_order_items; ++i) deep += "/reverse";
  EXPECT_EQ(canonical(deep), deep);
  EXPECT_EQ(canonical(deep + "/reverse"),
            "error: order position 129: found 'reverse'; accepted: at most 16 items");

  std::string perm = "perm(0";
  for (std::size_t i = 1; i < max_permutation_length; ++i) perm += "," + std::to_string(i);
  EXPECT_EQ(canonical(perm + ")"), perm + ")");
  EXPECT_EQ(canonical(perm + ",0)"),
            "error: order position 19376: found '0'; accepted: at most 4096 entries of perm");

  const std::string blanks(max_order_text - 7, ' ');
  EXPECT_EQ(canonical("reverse" + blanks), "reverse");
  EXPECT_EQ(canonical("reverse " + blanks), "error: order of 65537 bytes; accepted: at most 65536");
}

}  // namespace
}  // namespace kvsim
