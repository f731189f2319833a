// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// PyTorch's flash attention on this CPU: what its source fixes on every CPU. The orders inside
// products, which MKL chooses by the CPU, are not asserted.
#include <gtest/gtest.h>

#include "gpu/backend.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/setting.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

TEST(TorchAttention, WalksOverBlocksOf512Keys) {
  const auto applied = apply_setting(KVSIM_TEST_SETTING);
  ASSERT_TRUE(applied) << applied.error().message;
  const auto backend = make_backend("torch-cpu");
  ASSERT_TRUE(backend) << backend.error().message;
  for (const softfloat::Format& format : {softfloat::binary32, softfloat::bfloat16}) {
    for (const std::int64_t queries : {1, 40}) {
      AttentionCalls calls(**backend, {.shape = {.query_heads = 8,
                                                 .kv_heads = 4,
                                                 .query_len = queries,
                                                 .kv_len = 1500,
                                                 .head_dim = 64},
                                       .format = format});
      const auto found = reveal_attention(calls, {.least_outputs = 10000});
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_EQ(found->blocks.direction(), KeyDirection::first_to_last);
      EXPECT_EQ(found->blocks.blocks,
                (std::vector<KeyBlock>{{0, 512, 0, 0}, {512, 1024, 0, 1}, {1024, 1500, 0, 2}}));
      EXPECT_EQ(found->rescale, RescaleRule::every_rise);
      EXPECT_TRUE(found->classes.front().tree) << found->classes.front().why_no_tree;
      ASSERT_FALSE(found->replay.kernels.empty());
      // Where no kernel of the table agrees, the difference is shown.
      EXPECT_NE(found->explained(), found->replay.failing.has_value());
    }
  }
}

TEST(TorchAttention, HasNoBlocksInEagerAttention) {
  const auto backend = make_backend("torch-cpu");
  ASSERT_TRUE(backend) << backend.error().message;
  AttentionCalls calls(
      **backend,
      {.shape = {.query_heads = 2, .kv_heads = 2, .query_len = 1, .kv_len = 600, .head_dim = 64},
       .format = softfloat::binary32,
       .attributes = {{"backend", "eager"}}});
  const auto found = reveal_attention(calls, {.least_outputs = 1000});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->blocks.blocks, (std::vector<KeyBlock>{{0, 600, 0, 0}}));
  EXPECT_EQ(found->rescale, RescaleRule::not_seen);
}

}  // namespace
}  // namespace kvsim::gpu
