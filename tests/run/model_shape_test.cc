// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/model_shape.h"

#include <gtest/gtest.h>

namespace kvsim {
namespace {

TEST(ModelShape, KeepsWhatChangesArithmetic) {
  const auto gemma = decoder_shape(built_in_config("gemma-2-2b").value());
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ(gemma->name, "gemma-2-2b");
  EXPECT_EQ(gemma->layers, 26);
  EXPECT_EQ(gemma->hidden, 2304);
  EXPECT_EQ(gemma->ffn, 9216);
  EXPECT_EQ(gemma->query_heads, 8);
  EXPECT_EQ(gemma->kv_heads, 4);
  EXPECT_EQ(gemma->head_dim, 256);
  EXPECT_EQ(gemma->vocabulary, 256000);
  EXPECT_EQ(gemma->norm_epsilon, 1e-6);
  EXPECT_TRUE(gemma->norm_weight_plus_one);
  EXPECT_TRUE(gemma->sandwich_norms);
  EXPECT_EQ(gemma->attention_scale, 0.0625);
  EXPECT_EQ(gemma->attention_soft_cap, 50);
  EXPECT_EQ(gemma->final_soft_cap, 30);
  EXPECT_EQ(gemma->embedding_scale, 48);
  EXPECT_EQ(gemma->activation, GateActivation::gelu_tanh);
  EXPECT_TRUE(gemma->windowed(0));
  EXPECT_FALSE(gemma->windowed(1));

  const auto llama = decoder_shape(built_in_config("llama-3.1-8b").value()).value();
  EXPECT_EQ(llama.rope_scaling, (RopeScaling{RopeScalingKind::llama3, 8, 1, 4, 8192}));
  EXPECT_EQ(llama.rope_base, 500000);
  EXPECT_EQ(llama.attention_scale, 0);
  EXPECT_EQ(llama.embedding_scale, 1);
  EXPECT_FALSE(llama.windowed(0));
  EXPECT_EQ(llama.activation, GateActivation::silu);

  // 32 layers of 4 × 4096² + 3 × 4096 × 11008.
  const auto llama2 = decoder_shape(built_in_config("llama-2-7b").value()).value();
  EXPECT_EQ(llama2.layers * llama2.layer_weights(), 6476005376);

  EXPECT_TRUE(decoder_shape(built_in_config("qwen2.5-7b").value())->qkv_bias);
  const auto gemma3 = decoder_shape(built_in_config("gemma-3-270m").value()).value();
  EXPECT_TRUE(gemma3.qk_norm);
  EXPECT_EQ(gemma3.window_rope_base, 10000);
  EXPECT_EQ(gemma3.window, 512);
}

TEST(ModelShape, RefusesWhatCannotBe) {
  ModelConfig config = built_in_config("gemma-2-2b").value();
  config.query_pre_attn_scalar = 1e300;  // 1e-150 would count as the default scale
  EXPECT_EQ(decoder_shape(config).error().message,
            "query_pre_attn_scalar 1e+300: 1 ÷ its root must not be 0 in binary32");
  DecoderShape shape;
  ASSERT_TRUE(check_shape(shape));
  shape.kv_heads = 5;
  EXPECT_EQ(check_shape(shape).error().message,
            "5 K/V heads; accepted: divisors of the 16 query heads");
  shape.kv_heads = 4;
  shape.head_dim = 33;
  EXPECT_EQ(check_shape(shape).error().message, "head size 33; accepted: even sizes");
  shape.head_dim = 64;
  shape.layers = 0;
  EXPECT_EQ(check_shape(shape).error().message, "layers 0; accepted: 1 to 4096");
  shape.layers = 2;
  shape.has_window = {true};
  EXPECT_FALSE(check_shape(shape));
}

}  // namespace
}  // namespace kvsim
