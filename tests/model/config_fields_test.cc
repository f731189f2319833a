// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Each field of config.json that changes arithmetic, and what happens to those that a family's
// class does not read.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/generation_config.h"
#include "tests/model/model_folder.h"

namespace kvsim {
namespace {

struct Field {
  const char* type;
  const char* more;
  std::function<bool(const ModelConfig&)> holds;
};

TEST(ConfigFields, EachChangesWhatItNames) {
  using Config = ModelConfig;
  const Field fields[] = {
      {"llama", "", [](const Config& c) { return c.head_dim == 6 && c.kv_heads == 2; }},
      {"llama", R"(, "rms_norm_eps": 1e-5)",
       [](const Config& c) { return c.norm_epsilon == 1e-5; }},
      {"llama", R"(, "rope_theta": 5e5)", [](const Config& c) { return c.rope_base == 5e5; }},
      {"llama", R"(, "rope_scaling": {"type": "linear", "factor": 2.5})",
       [](const Config& c) {
         return c.rope_scaling == ConfigRopeScaling::linear && c.rope_factor == 2.5;
       }},
      {"llama",
       R"(, "rope_scaling": {"rope_type": "llama3", "factor": 32, "low_freq_factor": 1.5,
          "high_freq_factor": 5, "original_max_position_embeddings": 4096})",
       [](const Config& c) {
         return c.rope_scaling == ConfigRopeScaling::llama3 && c.rope_factor == 32 &&
                c.rope_low_frequency_factor == 1.5 && c.rope_high_frequency_factor == 5 &&
                c.rope_original_positions == 4096;
       }},
      {"llama", R"(, "rope_scaling": null)",
       [](const Config& c) { return c.rope_scaling == ConfigRopeScaling::none; }},
      {"llama", R"(, "hidden_act": "gelu")",
       [](const Config& c) { return c.activation == "gelu"; }},
      {"llama", R"(, "attention_bias": true)",
       [](const Config& c) { return c.qkv_bias && c.output_bias && !c.mlp_bias; }},
      {"llama", R"(, "mlp_bias": true)",
       [](const Config& c) { return c.mlp_bias && !c.qkv_bias && !c.output_bias; }},
      {"llama", "", [](const Config& c) { return !c.tied_embedding && !c.scaled_embedding; }},
      {"llama", R"(, "tie_word_embeddings": true)",
       [](const Config& c) { return c.tied_embedding; }},
      {"qwen2", R"(, "tie_word_embeddings": true)",
       [](const Config& c) { return c.tied_embedding && c.qkv_bias && !c.output_bias; }},
      {"qwen3", R"(, "attention_bias": true)",
       [](const Config& c) { return c.qk_norm && c.qkv_bias && c.output_bias; }},
      {"mistral", R"(, "sliding_window": 5)",
       [](const Config& c) { return c.window == 5 && c.has_window == std::vector(2, true); }},
      {"mistral", R"(, "sliding_window": null)", [](const Config& c) { return c.window == 0; }},
      {"gemma2", "",
       [](const Config& c) {
         return c.query_pre_attn_scalar == 256 && c.attention_soft_cap == 50 &&
                c.final_soft_cap == 30 && c.scaled_embedding && c.tied_embedding &&
                c.norm_weight_plus_one && c.sandwich_norms && !c.qk_norm;
       }},
      {"gemma2", R"(, "query_pre_attn_scalar": 144)",
       [](const Config& c) { return c.query_pre_attn_scalar == 144; }},
      {"gemma2", R"(, "final_logit_softcapping": 15.5)",
       [](const Config& c) { return c.final_soft_cap == 15.5 && c.attention_soft_cap == 50; }},
      {"gemma2", R"(, "final_logit_softcapping": null)",
       [](const Config& c) { return c.final_soft_cap == 0; }},
      {"gemma2", R"(, "attn_logit_softcapping": 20)",
       [](const Config& c) { return c.attention_soft_cap == 20 && c.final_soft_cap == 30; }},
      {"gemma3_text", R"(, "attn_logit_softcapping": 20, "final_logit_softcapping": 15.5)",
       [](const Config& c) { return c.attention_soft_cap == 0 && c.final_soft_cap == 15.5; }},
      {"gemma2", R"(, "hidden_activation": "gelu", "hidden_act": "silu")",
       [](const Config& c) { return c.activation == "gelu"; }},
      {"gemma3_text", R"(, "sliding_window_pattern": 2)",
       [](const Config& c) { return c.has_window == std::vector<bool>({true, false}); }},
      {"gemma3_text", R"(, "_sliding_window_pattern": 1)",
       [](const Config& c) { return c.has_window == std::vector(2, false); }},
      {"gemma3_text", R"(, "layer_types": ["full_attention", "sliding_attention"])",
       [](const Config& c) { return c.has_window == std::vector<bool>({false, true}); }},
      {"gemma3_text", R"(, "rope_local_base_freq": 123)",
       [](const Config& c) { return c.window_rope_base == 123 && c.rope_base == 1e6; }},
      {"qwen3", R"(, "sliding_window": 5)", [](const Config& c) { return c.window == 0; }},
      {"qwen3", R"(, "use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1)",
       [](const Config& c) {
         return c.window == 5 && c.has_window == std::vector<bool>({false, true});
       }},
      {"llama", "",
       [](const Config& c) { return c.max_positions == 0 && c.eos.empty() && !c.bos; }},
      {"llama", R"(, "max_position_embeddings": 2048, "bos_token_id": 0, "eos_token_id": 3)",
       [](const Config& c) {
         return c.max_positions == 2048 && c.bos == 0 && c.eos == std::vector<std::int64_t>({3});
       }},
      {"llama", R"(, "eos_token_id": [4, -1, 6], "bos_token_id": null)",
       [](const Config& c) { return c.eos == std::vector<std::int64_t>({4, 6}) && !c.bos; }},
  };
  for (const Field& field : fields) {
    const auto config = parse_config(test::small_config(field.type, field.more), "f");
    ASSERT_TRUE(config) << field.more << config.error().message;
    EXPECT_TRUE(field.holds(*config)) << field.type << field.more;
    EXPECT_FALSE(config->rope_interleaved);
  }
}

// Mistral's and Qwen2's classes have no such fields, and load the weights without these biases.
TEST(ConfigFields, WhatAClassDoesNotRead) {
  for (const char* type : {"mistral", "qwen2"}) {
    const auto config = parse_config(
        test::small_config(type, R"(, "attention_bias": true, "mlp_bias": true)"), "f");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_FALSE(config->output_bias);
    EXPECT_FALSE(config->mlp_bias);
    EXPECT_EQ(config->qkv_bias, std::string(type) == "qwen2");
    EXPECT_EQ(config->unused, std::vector<std::string>({"attention_bias", "mlp_bias"}));
  }
}

TEST(ConfigFields, TokensAndPositionsChangeNoArithmetic) {
  const auto config = parse_config(
      test::small_config("llama", R"(, "max_position_embeddings": 2, "eos_token_id": [3])"), "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->unused, std::vector<std::string>({"max_position_embeddings", "eos_token_id"}));
}

TEST(ConfigFields, RefusedByName) {
  struct Case {
    const char* more;
    const char* says;
  };
  for (const Case& test : {
           Case{R"(, "max_position_embeddings": 0)", "is the number 0; accepted: whole numbers"},
           Case{R"(, "eos_token_id": "2")",
                "\"eos_token_id\" is the text \"2\"; accepted: a token"},
           Case{R"(, "eos_token_id": {"a": 2})",
                "\"eos_token_id\" is an object; accepted: a token"},
           Case{R"(, "eos_token_id": [2, null])", "\"eos_token_id[1]\" is null; accepted: a token"},
           Case{R"(, "bos_token_id": 1.5)", "\"bos_token_id\" is the number 1.5"},
           Case{R"(, "rope_scaling": {"rope_type": "longrope", "factor": 4})", "\"longrope\""},
           Case{R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 4})", "\"dynamic\""},
           Case{R"(, "rope_parameters": {"rope_type": "yarn", "factor": 4})",
                "\"rope_parameters.rope_type\" is \"yarn\", which is not supported"},
       }) {
    const auto config = parse_config(test::small_config("llama", test.more), "f");
    ASSERT_FALSE(config) << test.more;
    test::expect_one_line(config.error());
    EXPECT_NE(config.error().message.find(test.says), std::string::npos) << config.error().message;
  }
  std::string many = "0";
  for (int i = 1; i < 257; ++i) many += ", 0";
  EXPECT_FALSE(parse_generation_config("{\"eos_token_id\": [" + many + "]}", "f"));
  EXPECT_TRUE(parse_generation_config("{\"eos_token_id\": [" + many.substr(3) + "]}", "f"));
}

}  // namespace
}  // namespace kvsim
