// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// SmolLM2-135M-Instruct as `kvsim fetch smollm2-135m` leaves it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/chat.h"
#include "model/checkpoint.h"
#include "tests/model/fetched_model.h"

namespace kvsim {
namespace {

std::string model_folder() { return test::fetched_model("smollm2-135m"); }

TEST(SmolLm2, IsTheModel) {
  const auto checkpoint = load_checkpoint(model_folder());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.layers, 30);
  EXPECT_EQ(config.hidden, 576);
  EXPECT_EQ(config.ffn, 1536);
  EXPECT_EQ(config.query_heads, 9);
  EXPECT_EQ(config.kv_heads, 3);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocabulary, 49152);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.rope_base, 100000);
  EXPECT_EQ(config.eos, std::vector<std::int64_t>{2});
  EXPECT_EQ(checkpoint->identity(),
            "572d3a240ea6a7d87515ce54b464bd905c01b35916d9a28aee6669fe845e012b");
}

TEST(SmolLm2, HasItsChatTemplate) {
  const auto row = chat_template_of(model_folder());
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ((*row)->name, "smollm2");
}

// The digest is that of the ids that Hugging Face's tokenizers 0.23.3 gives with the same
// tokenizer.json, as int32, one question after the other.
TEST(SmolLm2, TokenIdsOfEveryQuestionOfGsm8k) {
  test::expect_gsm8k_ids(
      model_folder(), {81760U, "818d4de6f8254a00c2567b3a207b57fceb9171957be5764a2521aa2d2c529ad7"});
}

}  // namespace
}  // namespace kvsim
