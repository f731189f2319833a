// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Gemma 3 270M as `kvsim fetch gemma3-270m --accept-terms` leaves it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/chat.h"
#include "model/checkpoint.h"
#include "tests/model/fetched_model.h"

namespace kvsim {
namespace {

std::string model_folder() { return test::fetched_model("gemma3-270m"); }

TEST(Gemma3, IsTheModel) {
  const auto checkpoint = load_checkpoint(model_folder());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.layers, 18);
  EXPECT_EQ(config.hidden, 640);
  EXPECT_EQ(config.ffn, 2048);
  EXPECT_EQ(config.query_heads, 4);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.vocabulary, 262144);
  EXPECT_EQ(config.norm_epsilon, 1e-6);
  EXPECT_EQ(config.rope_base, 1000000);
  EXPECT_EQ(config.window_rope_base, 10000);
  EXPECT_EQ(config.window, 512);
  EXPECT_EQ(std::ranges::count(config.has_window, false), 3);
  EXPECT_EQ(config.query_pre_attn_scalar, 256);
  EXPECT_TRUE(config.qk_norm && config.tied_embedding && config.norm_weight_plus_one);
  EXPECT_EQ(checkpoint->identity(),
            "cb91a01fed9602c23b15a0ddbf397c5c65d5e44dd672f781f6183acb82b21bac");
}

TEST(Gemma3, HasTheChatTemplateOfItsType) {
  const auto row = chat_template_of(model_folder());
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ((*row)->name, "gemma-3");
}

// The digest is that of the ids that Python's sentencepiece gives with the same tokenizer.model,
// bos before each question, as int32.
TEST(Gemma3, TokenIdsOfEveryQuestionOfGsm8k) {
  test::expect_gsm8k_ids(
      model_folder(), {81337U, "ea6c13427381dd8a877282461418161331f7813edf09cd03f18e44e0403f4bba"});
}

}  // namespace
}  // namespace kvsim
