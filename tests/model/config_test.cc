// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/json_fields.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using test::expect_one_line;

struct Expected {
  const char* name;
  std::int64_t layers, hidden, query_heads, kv_heads, head_dim, ffn, vocabulary;
  double epsilon, rope_base;
  const char* activation;
  std::int64_t window, windowed_layers;
  bool qkv_bias, qk_norm, gemma;
};

// Written by hand from the models' cards, not from the table under test.
const Expected expected_models[] = {
    {"llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 1e-5, 1e4, "silu", 0, 0, false, false,
     false},
    {"mistral-7b-v0.3", 32, 4096, 32, 8, 128, 14336, 32768, 1e-5, 1e6, "silu", 0, 0, false, false,
     false},
    {"gemma-2-2b", 26, 2304, 8, 4, 256, 9216, 256000, 1e-6, 1e4, "gelu_tanh", 4096, 13, false,
     false, true},
    {"gemma-3-270m", 18, 640, 4, 1, 256, 2048, 262144, 1e-6, 1e6, "gelu_tanh", 512, 15, false, true,
     true},
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, 1e-6, 1e6, "silu", 0, 0, true, false,
     false},
    {"llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 1e-5, 5e5, "silu", 0, 0, false, false,
     false},
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, 1e-5, 1e5, "silu", 0, 0, false, false, false},
};

TEST(Config, BuiltInModels) {
  ASSERT_EQ(built_in_models().size(), std::size(expected_models));
  for (const Expected& expected : expected_models) {
    SCOPED_TRACE(expected.name);
    const auto config = built_in_config(expected.name);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->name, expected.name);
    EXPECT_EQ(config->layers, expected.layers);
    EXPECT_EQ(config->hidden, expected.hidden);
    EXPECT_EQ(config->query_heads, expected.query_heads);
    EXPECT_EQ(config->kv_heads, expected.kv_heads);
    EXPECT_EQ(config->head_dim, expected.head_dim);
    EXPECT_EQ(config->ffn, expected.ffn);
    EXPECT_EQ(config->vocabulary, expected.vocabulary);
    EXPECT_EQ(config->norm_epsilon, expected.epsilon);
    EXPECT_EQ(config->rope_base, expected.rope_base);
    EXPECT_EQ(config->activation, expected.activation);
    EXPECT_EQ(config->window, expected.window);
    std::int64_t windowed = 0;
    for (const bool layer : config->has_window) windowed += layer ? 1 : 0;
    EXPECT_EQ(windowed, expected.windowed_layers);
    EXPECT_EQ(config->qkv_bias, expected.qkv_bias);
    EXPECT_FALSE(config->output_bias);
    EXPECT_EQ(config->qk_norm, expected.qk_norm);
    EXPECT_EQ(config->norm_weight_plus_one, expected.gemma);
    EXPECT_EQ(config->sandwich_norms, expected.gemma);
    EXPECT_EQ(config->scaled_embedding, expected.gemma);
    EXPECT_TRUE(config->unused.empty());
  }
}

TEST(Config, BuiltInDetails) {
  const auto llama = built_in_config("llama-3.1-8b").value();
  EXPECT_EQ(llama.rope_scaling, ConfigRopeScaling::llama3);
  EXPECT_EQ(llama.rope_factor, 8);
  EXPECT_EQ(llama.rope_low_frequency_factor, 1);
  EXPECT_EQ(llama.rope_high_frequency_factor, 4);
  EXPECT_EQ(llama.rope_original_positions, 8192);
  const auto gemma2 = built_in_config("gemma-2-2b").value();
  EXPECT_EQ(gemma2.attention_soft_cap, 50);
  EXPECT_EQ(gemma2.final_soft_cap, 30);
  EXPECT_EQ(gemma2.query_pre_attn_scalar, 256);
  EXPECT_TRUE(gemma2.has_window[0]);
  EXPECT_FALSE(gemma2.has_window[1]);
  const auto gemma3 = built_in_config("gemma-3-270m").value();
  EXPECT_EQ(gemma3.window_rope_base, 10000);
  EXPECT_EQ(gemma3.attention_soft_cap, 0);
  EXPECT_TRUE(gemma3.has_window[4]);
  EXPECT_FALSE(gemma3.has_window[5]);
  EXPECT_FALSE(gemma3.has_window[17]);
  const auto unknown = built_in_config("llama-2-7");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::usage);
  EXPECT_NE(unknown.error().message.find("did you mean llama-2-7b?"), std::string::npos);
}

// The fields that every family needs, with `more` between them.
std::string config_text(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type +
         R"(", "num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 128, )" +
         R"("num_attention_heads": 4, "vocab_size": 100)" + more + "}";
}

TEST(Config, DefaultsOfTheFamilies) {
  const auto llama = parse_config(config_text("llama", ""), "f").value();
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.head_dim, 16);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.rope_base, 10000);
  EXPECT_EQ(llama.window, 0);
  EXPECT_FALSE(llama.qkv_bias);
  const auto mistral = parse_config(config_text("mistral", ""), "f").value();
  EXPECT_EQ(mistral.window, 4096);
  EXPECT_EQ(mistral.has_window, std::vector<bool>(4, true));
  const auto qwen3 = parse_config(config_text("qwen3", ""), "f").value();
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);
  const auto biased = parse_config(config_text("llama", R"(, "attention_bias": true)"), "f");
  EXPECT_TRUE(biased->qkv_bias);
  EXPECT_TRUE(biased->output_bias);
  const auto qwen2 = parse_config(config_text("qwen2", R"(, "use_sliding_window": true,
      "sliding_window": 32, "max_window_layers": 3)"),
                                  "f")
                         .value();
  EXPECT_EQ(qwen2.window, 32);
  EXPECT_EQ(qwen2.has_window, std::vector<bool>({false, false, false, true}));
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
}

TEST(Config, WrittenByTransformers5) {
  const auto config = parse_config(config_text("gemma3_text", R"(, "architectures": ["A", "B"],
      "bos_token_id": 2, "head_dim": 16, "layer_types": ["full_attention", "sliding_attention",
      "full_attention", "sliding_attention"], "sliding_window": 8, "rope_parameters": {
      "full_attention": {"rope_theta": 2000000.0, "rope_type": "linear", "factor": 8},
      "sliding_attention": {"rope_theta": 5000.5, "rope_type": "default"}},
      "attn_logit_softcapping": null, "use_bidirectional_attention": false, "dtype": "float16")"),
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rope_base, 2000000);
  EXPECT_EQ(config->window_rope_base, 5000.5);
  EXPECT_EQ(config->rope_scaling, ConfigRopeScaling::linear);
  EXPECT_EQ(config->rope_factor, 8);
  EXPECT_EQ(config->has_window, std::vector<bool>({false, true, false, true}));
  EXPECT_EQ(config->dtype, "float16");
  EXPECT_EQ(config->unused,
            std::vector<std::string>({"architectures", "bos_token_id", "attn_logit_softcapping"}));
}

TEST(Config, TextPartOfSeveralModalities) {
  const std::string inner = config_text("gemma3_text", R"(, "use_cache": true)");
  const auto config = parse_config(
      R"({"model_type": "gemma3", "vision_config": {"hidden_size": 3}, "text_config": )" + inner +
          "}",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->hidden, 64);
  EXPECT_EQ(config->unused,
            std::vector<std::string>({"model_type", "vision_config", "text_config.use_cache"}));
  const auto quantised =
      parse_config(R"({"quantization_config": {"bits": 4}, "text_config": )" + inner + "}", "f");
  ASSERT_FALSE(quantised);
  EXPECT_NE(quantised.error().message.find("quantization_config"), std::string::npos);
}

struct Rejected {
  const char* more;
  const char* says;
};

TEST(Config, RefusesByName) {
  const Rejected cases[] = {
      {R"(, "quantization_config": {"bits": 4})",
       "\"quantization_config\" is an object, which changes"},
      {R"(, "num_local_experts": 8)", "\"num_local_experts\" is the number 8, which changes"},
      {R"(, "pretraining_tp": 2)", "\"pretraining_tp\" is the number 2"},
      {R"(, "partial_rotary_factor": 0.5)", "\"partial_rotary_factor\" is the number 0.5"},
      {R"(, "rope_scaling": {"type": "yarn", "factor": 4})", "\"yarn\", which is not supported"},
      {R"(, "rope_scaling": {"factor": 4})", "\"rope_scaling\" has no \"rope_type\""},
      {R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8})",
       "\"rope_scaling.low_freq_factor\" is missing"},
      {R"(, "hidden_act": "relu")", "\"relu\"; accepted: silu"},
      {R"(, "num_key_value_heads": 3)", "\"num_key_value_heads\" is 3; accepted: divisors of 4"},
      {R"(, "num_key_value_heads": "4")", "is the text \"4\"; accepted: whole numbers from 1"},
      {R"(, "num_key_value_heads": 0)", "is the number 0; accepted: whole numbers from 1"},
      {R"(, "rms_norm_eps": -1e-5)", "\"rms_norm_eps\" is the number -1e-05; accepted: numbers"},
      {R"(, "attention_bias": 1)", "\"attention_bias\" is the number 1; accepted: true, false"},
      {R"(, "head_dim": 15)", "head_dim is 15; accepted: even sizes"},
      {R"(, "hidden_size": 64)", "\"hidden_size\" stands twice"},
      {R"(, "rms_norm_eps": 1e-400)", "accepted: numbers within the range of binary64"},
  };
  for (const Rejected& test : cases) {
    SCOPED_TRACE(test.more);
    const auto config = parse_config(config_text("llama", test.more), "f.json");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().kind, ErrorKind::file);
    expect_one_line(config.error());
    EXPECT_TRUE(config.error().message.starts_with("f.json: ")) << config.error().message;
    EXPECT_NE(config.error().message.find(test.says), std::string::npos) << config.error().message;
  }
  const auto layers =
      parse_config(config_text("gemma2", R"(, "layer_types": ["full_attention", "linear_attention",
      "full_attention", "full_attention"])"),
                   "f");
  ASSERT_FALSE(layers);
  EXPECT_NE(layers.error().message.find("\"layer_types[1]\" is \"linear_attention\""),
            std::string::npos);
  const auto neutral =
      parse_config(config_text("llama", R"(, "quantization_config": null, "num_local_experts": 0,
      "pretraining_tp": 1, "rope_scaling": null, "rope_interleaved": false)"),
                   "f");
  ASSERT_TRUE(neutral) << neutral.error().message;
}

TEST(Config, MissingFieldsAndOtherTexts) {
  const auto says = [](const char* text, const char* words) {
    const auto config = parse_config(text, "f");
    ASSERT_FALSE(config) << text;
    expect_one_line(config.error());
    EXPECT_NE(config.error().message.find(words), std::string::npos) << config.error().message;
  };
  says(R"({"hidden_size": 3})", "\"model_type\" is missing");
  says(R"({"model_type": "mixtral"})", "\"mixtral\"; accepted: llama, mistral");
  says(R"({"model_type": "llama"})", "\"num_hidden_layers\" is missing");
  says("[1]", "the file is an array; accepted: one JSON object");
  says("3", "the file is the number 3");
  says("", "is not JSON");
  says("{", "is not JSON");
  says(R"({"model_type": "llama"} x)", "is not JSON");
  says(R"({"a.b": 3})", "accepted: keys without a dot");
  says(R"({"a": [[[[[[[[1]]]]]]]]})", "nested deeper than 8");
  says(R"({"a": 18446744073709551615})", "accepted: at most 9223372036854775807");
}

TEST(Config, LimitsOfTheReader) {
  const std::string long_text = "{\"a\": \"" + std::string(JsonLimits::bytes, 'x') + "\"}";
  const auto too_long = read_json_fields(long_text);
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message.find("accepted: at most 1048576"), std::string::npos);
  std::string many = "{\"a\": [0";
  for (std::size_t i = 0; i < JsonLimits::fields; ++i) many += ",0";
  const auto too_many = read_json_fields(many + "]}");
  ASSERT_FALSE(too_many);
  EXPECT_NE(too_many.error().message.find("more than 16384 fields"), std::string::npos);
  const auto missing = load_config("/nonexistent/config.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::file);
}

}  // namespace
}  // namespace kvsim
