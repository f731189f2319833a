// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The model that comes with kvsim: its shape and size, and its tokenizer against ids that Hugging
// Face's tokenizers library gave (tests/golden/kv-tiny-tokens.json). What its answers are worth
// stands in data/kv-tiny/MODEL_CARD.md; the problems have their own test, kv_tiny_problems_test.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/generation_config.h"
#include "model/prompts.h"
#include "model/tokenizer.h"

namespace kvsim {
namespace {

const std::string folder = KVSIM_SOURCE_DIR "/data/kv-tiny";

Tokenizer load_tokenizer() {
  auto tokenizer = Tokenizer::load(folder);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return std::move(*tokenizer);
}

TEST(KvTiny, IsASmallDecoderWithGroupedQueries) {
  const auto checkpoint = load_checkpoint(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_GE(config.layers, 4);
  EXPECT_EQ(config.query_heads, 4 * config.kv_heads);
  EXPECT_GE(config.head_dim, 32);
  EXPECT_TRUE(config.tied_embedding);
  EXPECT_EQ(config.activation, "silu");
  std::int64_t parameters = 0;
  for (const Weight& weight : checkpoint->weights()) {
    EXPECT_EQ(weight.dtype, Dtype::bf16) << weight.name;
    parameters += weight.rows() * weight.columns();
    EXPECT_TRUE(checkpoint->read(weight)) << weight.name;  // every value is finite
  }
  EXPECT_GE(parameters, 800'000);
  EXPECT_LE(parameters, 950'000);
  EXPECT_LT(std::filesystem::file_size(folder + "/model.safetensors"), 2'000'000U);
}

TEST(KvTiny, EndsTextsWithATokenOfItsVocabulary) {
  const Tokenizer tokenizer = load_tokenizer();
  const auto checkpoint = load_checkpoint(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(tokenizer.vocabulary_size(), checkpoint->config().vocabulary);
  const auto generation = load_generation_config(folder + "/generation_config.json");
  ASSERT_TRUE(generation) << generation.error().message;
  ASSERT_EQ(generation->eos.size(), 1U);
  EXPECT_EQ(generation->eos[0], tokenizer.eos());
  EXPECT_EQ(tokenizer.find_special("<|endoftext|>"), tokenizer.eos());
  EXPECT_FALSE(tokenizer.adds_bos());
}

TEST(KvTiny, TokensAreThoseOfTheLibrary) {
  const Tokenizer tokenizer = load_tokenizer();
  EXPECT_EQ(tokenizer.kind(), "byte-level BPE");
  std::ifstream file(KVSIM_SOURCE_DIR "/tests/golden/kv-tiny-tokens.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.size(), 40U);
  for (const auto& row : golden) {
    const auto text = row["text"].get<std::string>();
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, row["ids"].get<std::vector<TokenId>>()) << text;
    const auto decoded = tokenizer.decode(*ids, true);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, text);
  }
}

TEST(KvTiny, AnyBytesOfAProblemComeBack) {
  const Tokenizer tokenizer = load_tokenizer();
  const auto problems = load_prompts(folder + "/problems.jsonl");
  ASSERT_TRUE(problems) << problems.error().message;
  ASSERT_EQ(problems->size(), 1000U);
  for (const Prompt& problem : *problems) {
    EXPECT_TRUE(problem.answer.starts_with("#### ")) << problem.answer;
    const auto ids = tokenizer.encode(problem.text);
    ASSERT_TRUE(ids) << ids.error().message;
    // A word is about one token: the merges were learned from such words.
    EXPECT_LT(ids->size() * 2, problem.text.size()) << problem.text;
    EXPECT_EQ(tokenizer.decode(*ids).value(), problem.text);
  }
}

}  // namespace
}  // namespace kvsim
