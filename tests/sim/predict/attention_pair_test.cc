// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/attention_pair.h"

#include <gtest/gtest.h>

#include "sim/predict/controls.h"
#include "sim/predict/grouped_queries.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

AttentionPairOptions options(const char* on, const char* off, std::int64_t positions) {
  AttentionPairOptions result;
  result.layer = {softfloat::binary16, {}, 0};
  result.on.kernel = find_attention_kernel(on);
  result.off.kernel = find_attention_kernel(off);
  result.positions = positions;
  return result;
}

AttentionNumbers numbers(const AttentionShape& shape, std::uint64_t seed = 1) {
  return make_attention_numbers(InputKind::gaussian, seed, shape, softfloat::binary16);
}

TEST(AttentionNumbers, PartsAreThoseOfTheWhole) {
  const AttentionNumbers all{
      {.query_heads = 2, .kv_heads = 1, .query_len = 3, .kv_len = 4, .head_dim = 1},
      {10, 11, 12, 20, 21, 22},
      {1, 2, 3, 4},
      {5, 6, 7, 8}};
  const AttentionNumbers step = part_of_sequence(all, 1, 1);
  EXPECT_EQ(step.q, (std::vector<float>{11, 21}));
  EXPECT_EQ(step.k, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(step.shape.kv_len, 3);
  EXPECT_EQ(part_of_sequence(all, 0, 1).q, (std::vector<float>{10, 11, 20, 21}));
  const AttentionNumbers last = last_queries(all, 2);
  EXPECT_EQ(last.q, (std::vector<float>{11, 12, 21, 22}));
  EXPECT_EQ(last.shape.query_len, 2);
  const AttentionNumbers repeated = repeat_heads(all);
  EXPECT_EQ(repeated.v, (std::vector<float>{5, 6, 7, 8, 5, 6, 7, 8}));
  EXPECT_EQ(repeated.shape.group(), 1);
}

// A kernel without tiles computes a query the same whether it stands alone or among others, up to
// the order of its sums over the keys; the errors of both are those of binary16 arithmetic.
TEST(AttentionPair, BothSidesAreNearExactAttention) {
  const AttentionShape shape{
      .query_heads = 4, .kv_heads = 2, .query_len = 40, .kv_len = 40, .head_dim = 32};
  const AttentionPair pair =
      compare_attention(options("v100-eager", "v100-eager", 3), numbers(shape)).value();
  EXPECT_EQ(pair.positions, 3);
  EXPECT_TRUE(pair.whole_prefix);
  EXPECT_EQ(pair.on.queries, 1);
  EXPECT_EQ(pair.on.keys, 40);
  EXPECT_EQ(pair.off.queries, 40);
  EXPECT_EQ(pair.on.error.elements, 3 * 4 * 32);
  for (const AttentionSide* side : {&pair.on, &pair.off}) {
    EXPECT_GT(side->error.relative_l2, 1e-4);  // one rounding of the output is 2.1e-4
    EXPECT_LT(side->error.relative_l2, 2e-3);
  }
  EXPECT_LE(pair.difference.relative_l2, pair.on.error.relative_l2 + pair.off.error.relative_l2);
  EXPECT_EQ(pair.by_head.size(), 4U);
  std::int64_t differing = 0;
  for (const VectorDifference& head : pair.by_head) differing += head.differing;
  EXPECT_EQ(differing, pair.difference.differing);
}

TEST(AttentionPair, ALongPrefillComputesItsLastQueries) {
  const AttentionShape shape{
      .query_heads = 1, .kv_heads = 1, .query_len = 160, .kv_len = 160, .head_dim = 4};
  AttentionPairOptions request = options("v100-eager", "v100-eager", 1);
  EXPECT_TRUE(compare_attention(request, numbers(shape)).value().whole_prefix);
  request.most_prefill_work = 160 * 160 * 4 - 1;
  const AttentionPair pair = compare_attention(request, numbers(shape)).value();
  EXPECT_FALSE(pair.whole_prefix);
  EXPECT_EQ(pair.off.queries, 128);
}

TEST(GroupedQueries, RepeatingHeadsChangesNoBitAndTheKernelHardlyCorrelates) {
  constexpr std::int64_t group = 4;
  const AttentionShape shape{
      .query_heads = 2 * group, .kv_heads = 2, .query_len = 64, .kv_len = 64, .head_dim = 64};
  AttentionShape own_heads = shape;
  own_heads.kv_heads = shape.query_heads;
  const AttentionNumbers grouped = numbers(shape);
  const AttentionNumbers multi_head = numbers(own_heads);
  const auto unrounded = [](const AttentionShape& each) {
    return make_attention_numbers(InputKind::gaussian, 1, each, softfloat::binary32);
  };
  const AttentionNumbers before = unrounded(shape);
  const AttentionNumbers multi_head_before = unrounded(own_heads);
  GroupedQueriesOptions request{options("v100-eager", "v100-eager", 8), 256, 1};
  const GroupedQueries found =
      measure_grouped_queries(request, {&grouped, &multi_head, &before, &multi_head_before})
          .value();
  EXPECT_EQ(found.group, group);
  EXPECT_EQ(found.ceiling, 2);
  EXPECT_EQ(found.repeated.differing, 0);
  ASSERT_EQ(found.errors.size(), 3U);
  const GroupedError& kernel = found.errors[0];
  const GroupedError& storage = found.errors[1];
  EXPECT_NEAR(kernel.mean_correlation, 0, 0.1);
  // Every query head averages the same rounding errors of V with its own weights, all positive.
  EXPECT_GT(storage.mean_correlation, 0.1);
  EXPECT_LT(storage.mean_correlation, 1);
  for (const GroupedError& error : found.errors) {
    EXPECT_NEAR(error.amplification, error.formula, 0.1 * error.formula) << error.source;
    EXPECT_LE(error.amplification, found.ceiling) << error.source;
    EXPECT_NEAR(error.projected, 1, 0.1) << error.source;
  }
  // Without unrounded numbers only the kernel's own errors are known.
  EXPECT_EQ(
      measure_grouped_queries(request, {&grouped, nullptr, nullptr, nullptr}).value().errors.size(),
      1U);
}

TEST(Controls, WhatMustBeZeroIsAndFloat64IsFarBelowFloat32) {
  const AttentionShape shape{
      .query_heads = 4, .kv_heads = 2, .query_len = 200, .kv_len = 200, .head_dim = 64};
  const AttentionNumbers inputs = numbers(shape);
  const AttentionPairOptions request = options("h100-fa3", "a100-fa2", 1);
  const AttentionPair pair = compare_attention(request, inputs).value();
  const std::vector<ControlResult> controls = run_controls(request, pair, inputs).value();
  ASSERT_EQ(controls.size(), 5U);
  for (const ControlResult& control : controls) {
    EXPECT_TRUE(control.passed()) << control.name;
    EXPECT_EQ(control.elements, 4 * 64);
  }
  EXPECT_TRUE(controls[0].must_be_zero);  // replica
  EXPECT_TRUE(controls[1].must_be_zero);  // identity
  EXPECT_TRUE(controls[2].must_be_zero);  // exact accumulator
  EXPECT_GT(controls[3].relative_l2, 1e-9);
  EXPECT_LT(controls[3].relative_l2, 1e-6);
  EXPECT_GT(controls[4].relative_l2, 1e-18);
  EXPECT_LT(controls[4].relative_l2, 1e-14);
}

}  // namespace
}  // namespace kvsim
