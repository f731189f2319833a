// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tests/sim/attention/attention_helpers.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using test::Layer;

// With q = 0 every p is 1 and nothing is rescaled: out is the sum of v over 2^7 keys ÷ 2^7. 2^60
// hides what is added before −2^60, so that the ones that are left tell what comes after it.
TEST(OnlineTiles, WalksFromTheLastBlockToTheFirst) {
  Layer layer({.query_heads = 1, .kv_heads = 1, .query_len = 1, .kv_len = 128, .head_dim = 128},
              bfloat16, 1);
  std::fill(layer.q.begin(), layer.q.end(), 0.0F);
  std::fill(layer.v.begin(), layer.v.end(), 1.0F);
  const auto put = [&](std::int64_t key, float value) {
    layer.v[static_cast<std::size_t>(key * 128)] = value;
  };
  put(64, 0x1p60F);   // first key of the block that is visited first
  put(32, -0x1p60F);  // of the other; the unit takes 8 terms at a time
  layer.problem.launch.splits = 1;
  const AttentionResult fa2 = test::run("a100-fa2", layer.problem);
  EXPECT_EQ(fa2.block_columns, 64);
  EXPECT_EQ(fa2.out[0], 24.0F / 128);  // keys 40 … 63
  EXPECT_EQ(fa2.out[1], 1);
  // One block of 128: 2^60 comes last.
  const AttentionResult one_block = test::run("a100-flash-decoding", layer.problem);
  EXPECT_EQ(one_block.block_columns, 128);
  EXPECT_EQ(one_block.out[0], 56.0F / 128);  // keys 72 … 127
}

}  // namespace
}  // namespace kvsim
