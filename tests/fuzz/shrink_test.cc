// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/shrink.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fuzz/flip/search.h"
#include "fuzz/flip/shrink_steps.h"
#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

constexpr auto always = [](std::int64_t) { return true; };

/// A flip that the search finds.
FlipCase found_flip(const CaseShape& shape, std::int64_t runs) {
  const auto scorer = FlipScorer::make(shape).value();
  FlipSearch search(scorer, {.seed = 0, .islands = 2, .threads = 2});
  search.run(runs, always);
  return search.confirmed().value().find.scored.flip_case;
}

// 2048 + 1 ties back to 2048 in binary16, 1 + 1 counts: three terms are a flip, two are none (they
// have one order). What surrounds them is 0 in token 0, and equal in both orders in token 1.
TEST(Shrink, LeavesWhatAFlipNeeds) {
  FlipCase flip_case = empty_case(sum_shape(12, "sequential", "reverse", softfloat::binary16));
  for (float& x : flip_case[CaseTensor::state]) x = 1;
  auto& tokens = flip_case[CaseTensor::tokens];
  tokens[2] = 2048;
  tokens[5] = 1;
  tokens[9] = 1;
  tokens[14] = 2048;
  tokens[21] = 1.5F;  // 2049.5 is 2050 in both orders, while token 0 has 2048 or 2050, exactly 2050
  const auto shrunk = shrink(flip_case, 0);
  ASSERT_TRUE(shrunk) << shrunk.error().message;
  EXPECT_TRUE(shrunk->confirmation.flips());
  EXPECT_TRUE(shrunk->complete);
  EXPECT_EQ(shrunk->flip_case.shape.terms, 3);
  EXPECT_EQ(shrunk->before.keys, 12);
  EXPECT_EQ(shrunk->after.keys, 3);
  EXPECT_EQ(shrunk->after.numbers, 9);
  EXPECT_LE(shrunk->after.nonzero, 8);
  EXPECT_GE(shrunk->score.ratio(), shrunk->floor);
}

TEST(Shrink, IsDeterministicReplaysAndEndsWhereNothingIsSmaller) {
  std::vector<FlipCase> flips;
  flips.push_back(found_flip(sum_shape(32, "split(4)", "pairwise", softfloat::binary16), 2000));
  flips.push_back(found_flip(attention_shape(4, 136, "a100-fa2", 2), 100));
  for (const FlipCase& flip : flips) {
    const auto once = shrink(flip, 0);
    ASSERT_TRUE(once) << once.error().message;
    EXPECT_TRUE(once->complete);
    EXPECT_LT(once->after.numbers, once->before.numbers);
    // A flip that a few roundings decide needs few bits.
    EXPECT_LT(once->after.significant_bits, once->before.significant_bits / 4);
    EXPECT_GE(once->claim.value, default_floor_share * once->value_before);
    const auto replayed = parse_case(to_text(once->flip_case));
    ASSERT_TRUE(replayed) << replayed.error().message;
    EXPECT_EQ(*replayed, once->flip_case);
    const auto scorer = FlipScorer::make(replayed->shape);
    ASSERT_TRUE(scorer);
    const auto confirmation = confirm(*scorer, *replayed);
    ASSERT_TRUE(confirmation);
    EXPECT_TRUE(confirmation->flips());
    const auto twice = shrink(*replayed, 0);
    ASSERT_TRUE(twice) << twice.error().message;
    EXPECT_EQ(twice->flip_case, once->flip_case);
    if (flip.shape.kind == CaseKind::sum) {
      EXPECT_EQ(shrink(flip, 0)->flip_case, once->flip_case);
    }
  }
}

TEST(Shrink, KeepsTheFloorAndTheLimits) {
  const FlipCase flip =
      found_flip(sum_shape(32, "sequential", "pairwise", softfloat::binary16), 2000);
  const auto free = shrink(flip, 0x1p-10);
  ASSERT_TRUE(free);
  const double ratio = free->value_before;
  const auto strict = shrink(flip, 0.9 * ratio);
  ASSERT_TRUE(strict);
  EXPECT_GE(strict->score.ratio(), 0.9 * ratio);
  EXPECT_GT(strict->after.numbers, free->after.numbers);
  EXPECT_EQ(shrink(flip, 1.01 * ratio).error().kind, ErrorKind::cannot_tell);
  const auto cut = shrink(flip, 0, {.scores = 20});
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->complete);
  EXPECT_LE(cut->scores, 20);
  EXPECT_TRUE(cut->confirmation.flips());
}

TEST(Shrink, RefusesWhatDoesNotFlip) {
  FlipCase even = planted_flip();
  for (float& x : even[CaseTensor::tokens]) x = 1;
  EXPECT_EQ(shrink(even, 0).error().kind, ErrorKind::cannot_tell);
}

TEST(ShrinkSteps, TakeAwayTheSamePartOfEveryTensor) {
  CaseShape shape = attention_shape(4, 3, "a100-fa2", 1);
  shape.attention.query_heads = 4;
  shape.attention.kv_heads = 2;
  FlipCase whole = empty_case(shape);
  for (auto& tensor : whole.tensors) {
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(i);
  }
  const FlipCase fewer_keys = without(whole, CaseAxis::keys, {1, 1});
  EXPECT_EQ(fewer_keys.shape.attention.kv_len, 2);
  EXPECT_EQ(fewer_keys[CaseTensor::k],
            (std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23}));
  EXPECT_EQ(fewer_keys[CaseTensor::k], fewer_keys[CaseTensor::v]);
  EXPECT_EQ(fewer_keys[CaseTensor::q], whole[CaseTensor::q]);

  const FlipCase narrower = without(whole, CaseAxis::dimensions, {1, 3});
  EXPECT_EQ(narrower.shape.attention.head_dim, 1);
  EXPECT_EQ(narrower[CaseTensor::v], (std::vector<float>{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(narrower[CaseTensor::q], (std::vector<float>{0, 2, 4, 6}));  // × √(1 ÷ 4)
  EXPECT_EQ(narrower[CaseTensor::tokens], (std::vector<float>{0, 4, 8, 12, 16, 20, 24, 28}));

  const FlipCase second_of_group = without(whole, CaseAxis::group_heads, {0, 1});
  EXPECT_EQ(second_of_group.shape.attention.query_heads, 2);
  EXPECT_EQ(second_of_group[CaseTensor::q], (std::vector<float>{4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(second_of_group[CaseTensor::k], whole[CaseTensor::k]);

  const FlipCase one_kv_head = without(whole, CaseAxis::kv_heads, {1, 1});
  EXPECT_EQ(one_kv_head.shape.attention.kv_heads, 1);
  EXPECT_EQ(one_kv_head.shape.attention.query_heads, 2);
  EXPECT_EQ(one_kv_head[CaseTensor::q], (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(one_kv_head[CaseTensor::v].size(), 12U);
  EXPECT_EQ(one_kv_head[CaseTensor::tokens].size(), 16U);
  EXPECT_EQ(one_kv_head[CaseTensor::tokens][8], 16.0F);
  for (const FlipCase& each : {fewer_keys, narrower, second_of_group, one_kv_head}) {
    EXPECT_TRUE(check_shape(each.shape));
    EXPECT_EQ(parse_case(to_text(each)).value(), each);
  }
}

TEST(ShrinkSteps, RoundAPartOfAnAxis) {
  FlipCase whole = empty_case(attention_shape(2, 3, "a100-fa2", 1));
  for (auto& tensor : whole.tensors) {
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(i + 3);
  }
  const FlipCase keys = with_fewer_bits(whole, CaseAxis::keys, {1, 2}, 1);
  EXPECT_EQ(keys[CaseTensor::k], (std::vector<float>{3, 4, 4, 4, 4, 8}));  // of 3, 4, 5, 6, 7, 8
  EXPECT_EQ(keys[CaseTensor::v], keys[CaseTensor::k]);
  EXPECT_EQ(keys[CaseTensor::q], whole[CaseTensor::q]);
  EXPECT_EQ(keys[CaseTensor::tokens], whole[CaseTensor::tokens]);
  const FlipCase elements = with_fewer_bits(whole, CaseAxis::dimensions, {0, 1}, 0);
  EXPECT_EQ(elements[CaseTensor::k], (std::vector<float>{0, 4, 0, 6, 0, 8}));
  EXPECT_EQ(elements[CaseTensor::q], (std::vector<float>{0, 4, 0, 6}));
  EXPECT_EQ(elements[CaseTensor::tokens], (std::vector<float>{0, 4, 0, 6, 0, 8, 0, 10}));
  const FlipCase heads = with_fewer_bits(whole, CaseAxis::group_heads, {0, 1}, 0);
  EXPECT_EQ(heads[CaseTensor::q], (std::vector<float>{0, 0, 5, 6}));
  EXPECT_EQ(heads[CaseTensor::v], whole[CaseTensor::v]);
}

TEST(ShrinkSteps, JoinSplits) {
  const CaseShape sum = sum_shape(12, "split(6)/split(2)", "reverse", softfloat::binary16);
  EXPECT_EQ(to_string(with_splits(sum, path_on, 2).orders[path_on]), "split(2)/split(2)");
  EXPECT_EQ(to_string(with_splits(sum, path_on, 1).orders[path_on]), "split(1)/split(2)");
  EXPECT_EQ(with_splits(sum, path_off, 1), sum);
  const CaseShape attention = attention_shape(4, 300, "a100-fa2", 3);
  EXPECT_EQ(with_splits(attention, path_on, 2).kernels[path_on].splits, 2);
}

TEST(ShrinkSteps, CutSignificantBits) {
  EXPECT_EQ(significant_bits(0), 0);
  EXPECT_EQ(significant_bits(-0x1p-20F), 1);
  EXPECT_EQ(significant_bits(0x1.8p+5F), 2);
  EXPECT_EQ(significant_bits(0x1.fffffep+0F), 24);
  EXPECT_EQ(cut_to_bits(-0x1.dp+3F, 0), 0.0F);
  EXPECT_EQ(cut_to_bits(-0x1.dp+3F, 1), -0x1p+3F);
  EXPECT_EQ(cut_to_bits(-0x1.dp+3F, 3), -0x1.cp+3F);
  EXPECT_EQ(cut_to_bits(-0x1.dp+3F, 5), -0x1.dp+3F);
}

}  // namespace
}  // namespace kvsim::fuzz
