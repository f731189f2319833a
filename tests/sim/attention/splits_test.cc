// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tests/sim/attention/attention_helpers.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using test::bits_of;
using test::Layer;

SplitPlan plan(std::string_view kernel, const AttentionShape& shape,
               const AttentionLaunch& launch = {}, const AttentionMask& mask = {}) {
  return plan_splits(test::kernel(kernel), shape, mask, launch);
}

/// Decode of one query with 32 query and 8 K/V heads, head_dim 128.
AttentionShape decode(std::int64_t kv_len) { return {32, 8, 1, kv_len, 128}; }

// Worked by hand from docs/attention.md, "Splits".
TEST(Splits, NumbersWorkedByHand) {
  // 8 tiles on 216 slots, 64 blocks of 128. Numbers that change ⌈64/s⌉ and their efficiency: …, 16:
  // 0.593, 22: 176/216 = 0.815, 32: 256/216 in 2 waves = 0.593, 64: 0.790. Least: 0.85 · 0.815.
  SplitPlan p = plan("a100-fa2", decode(8192));
  EXPECT_EQ(p.splits, 22);
  EXPECT_EQ(p.size, 3 * 128);
  EXPECT_EQ(p.block_columns, 128);
  // 264 slots: 22: 0.667, 32: 256/264 = 0.970, 64: 512/264 in 2 waves = 0.970.
  p = plan("h100-fa2", decode(8192));
  EXPECT_EQ(p.splits, 32);
  EXPECT_EQ(p.size, 2 * 128);
  // 8 tiles on 132 slots, 47 blocks of 176; every number counts. 33: 264/132 in 2 waves = 1. Least
  // 0.85: 14: 112/132 = 0.848, 15: 120/132 = 0.909.
  p = plan("h100-fa3", decode(8192));
  EXPECT_EQ(p.splits, 15);
  EXPECT_EQ(p.block_columns, 176);
  // ⌊148/8⌋.
  EXPECT_EQ(plan("b200-fa4", decode(8192)).splits, 18);
  // ⌊2 · 108/8⌋ = 27 chunks: 27 · 303 < 8192 ≤ 27 · 304.
  p = plan("a100-flashinfer", decode(8192));
  EXPECT_EQ(p.splits, 27);
  EXPECT_EQ(p.size, 304);
  // Pages of 16: 512 of them, 27 · 18 < 512 ≤ 27 · 19.
  p = plan("a100-flashinfer", decode(8192), {.page_size = 16, .paged = true});
  EXPECT_EQ(p.size, 19 * 16);
}

TEST(Splits, NotWhereTheTilesFillTheDevice) {
  // 4 · 8 · 6 = 192 tiles: more than 0.8 · 216 = 172.8 slots, fewer than 0.8 · 264 = 211.2.
  EXPECT_EQ(plan("a100-fa2", decode(8192), {.batch = 24}).splits, 1);
  EXPECT_GT(plan("h100-fa2", decode(8192), {.batch = 24}).splits, 1);
  EXPECT_EQ(plan("h100-fa2", decode(8192), {.batch = 24, .multiprocessors = 108}).splits, 1);
  // Four blocks are not split in FlashAttention-3 and -4.
  EXPECT_EQ(plan("h100-fa3", decode(4 * 176)).splits, 1);
  EXPECT_GT(plan("h100-fa3", decode(4 * 176 + 1)).splits, 1);
  EXPECT_EQ(plan("b200-fa4", decode(512)).splits, 1);
  EXPECT_GT(plan("b200-fa4", decode(513)).splits, 1);
  EXPECT_EQ(plan("mi300-fa2", decode(8192)).splits, 1);
  // Without splits FlashAttention-2 has another tile, which its older decoding kernel did not have.
  EXPECT_EQ(plan("a100-fa2", decode(8192), {.splits = 1}).block_columns, 64);
  EXPECT_EQ(plan("a100-flash-decoding", decode(8192), {.splits = 1}).block_columns, 128);
}

TEST(Splits, AreChosenForTheLongestOfTheBatch) {
  const SplitPlan own = plan("a100-flashinfer", decode(500), {.batch = 4});
  EXPECT_EQ(own.size, 128);  // 4 · ⌈500/128⌉ ≤ 27
  const SplitPlan batch =
      plan("a100-flashinfer", decode(500), {.batch = 4, .longest_kv_len = 1000});
  EXPECT_EQ(batch.size, 167);  // 4 · ⌈1000/167⌉ = 24, 4 · ⌈1000/166⌉ = 28
}

TEST(Splits, OfFlashAttention3ShareWhatATileVisits) {
  const AttentionShape prefill{1, 1, 256, 256, 128};
  const SplitPlan p = plan("h100-fa3", prefill, {.splits = 2});
  EXPECT_EQ(p.block_columns, 128);
  EXPECT_EQ(p.tile_rows, 128);
  const auto expect_keys = [&](std::int64_t tile, std::int64_t split, std::int64_t begin,
                               std::int64_t end) {
    const attention::KeyRange keys = split_keys(p, prefill, {}, tile, split);
    EXPECT_EQ(keys.begin, begin) << tile << " " << split;
    EXPECT_EQ(keys.end, end) << tile << " " << split;
  };
  // Queries 0 … 127 visit one block, which the first split takes; the others one each.
  expect_keys(0, 0, 0, 128);
  EXPECT_TRUE(split_keys(p, prefill, {}, 0, 1).empty());
  expect_keys(1, 0, 0, 128);
  expect_keys(1, 1, 128, 256);
}

// One split of a forced number is the plain kernel; a split of all keys is, too.
TEST(Splits, OneIsThePlainKernel) {
  for (const std::string_view name : {"a100-fa2", "h100-fa3", "b200-fa4", "h100-flashinfer"}) {
    Layer layer({4, 2, 2, 300, 64}, binary16, 4);
    layer.problem.launch.splits = 1;
    const AttentionResult plain = test::run(name, layer.problem);
    layer.problem.launch.splits = 0;
    layer.problem.launch.split_size = 300;
    const AttentionResult whole = test::run(name, layer.problem);
    EXPECT_EQ(whole.splits, 1);
    EXPECT_EQ(bits_of(plain.out), bits_of(whole.out)) << name;
    // More splits than blocks: most are empty.
    layer.problem.launch.split_size = 0;
    layer.problem.launch.splits = 50;
    const AttentionResult many = test::run(name, layer.problem);
    EXPECT_EQ(many.splits, 50);
    EXPECT_NE(bits_of(plain.out), bits_of(many.out)) << name;
    for (std::size_t i = 0; i < plain.out.size(); ++i) {
      EXPECT_NEAR(plain.out[i], many.out[i], 2e-3) << name;
    }
  }
}

/// The largest difference of two rows of bfloat16 numbers, in units in the last place of the
/// largest number of the row.
double ulps(std::span<const float> a, std::span<const float> b) {
  float largest = 0;
  float difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(static_cast<double>(difference), 8 - exponent);
}

// A decode batch of four, lengths 900, 1000, 120 and 500, then 800, 800, 120 and 500 (the shape of
// flash-attention issues 1570 and 1897): what happens to the two that did not change?
TEST(Splits, NeighboursMoveARowOnlyWhereTheLaunchSplitsAsOne) {
  for (const std::int64_t length : {120, 500}) {
    Layer layer(decode(length), bfloat16, static_cast<std::uint64_t>(length));
    AttentionLaunch& launch = layer.problem.launch;
    launch.batch = 4;
    launch.longest_kv_len = 1000;
    const AttentionResult before = test::run("a100-flashinfer", layer.problem);
    launch.longest_kv_len = 800;
    const AttentionResult after = test::run("a100-flashinfer", layer.problem);
    // Chunks of 167 and of 134 keys: one is enough for 120.
    EXPECT_EQ(bits_of(before.out) != bits_of(after.out), length == 500);
    for (std::size_t head = 0; head < 32; ++head) {
      const auto row = [&](const AttentionResult& result) {
        return std::span(result.out).subspan(head * 128, 128);
      };
      EXPECT_LE(ulps(row(before), row(after)), 2);
    }
    // Split by its own length, the row does not know of the others.
    launch = {};
    const AttentionResult own = test::run("a100-flashinfer", layer.problem);
    launch.longest_kv_len = length;
    EXPECT_EQ(bits_of(own.out), bits_of(test::run("a100-flashinfer", layer.problem).out));
    // And with a fixed size of splits the batch does not matter.
    launch = {.batch = 4, .longest_kv_len = 1000, .split_size = 128};
    const AttentionResult fixed = test::run("a100-flashinfer", layer.problem);
    launch.longest_kv_len = 800;
    EXPECT_EQ(bits_of(fixed.out), bits_of(test::run("a100-flashinfer", layer.problem).out));
  }
}

}  // namespace
}  // namespace kvsim
