// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// SmolLM2-135M-Instruct as `kvsim fetch smollm2-135m` leaves it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/chat.h"
#include "model/checkpoint.h"
#include "model/tokenizer.h"
#include "softfloat/sha256.h"

namespace kvsim {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string model_folder() {
  std::string cache = variable("KVSIM_CACHE");
  if (cache.empty() && !variable("XDG_CACHE_HOME").empty()) {
    cache = variable("XDG_CACHE_HOME") + "/kvsim";
  }
  if (cache.empty()) cache = variable("HOME") + "/.cache/kvsim";
  return cache + "/models/smollm2-135m";
}

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
  const std::string shared = variable("KVSIM_SHARED");
  if (shared.empty()) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const auto tokenizer = Tokenizer::load(model_folder());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::ifstream file(shared + "/data/gsm8k/test.jsonl");
  std::vector<TokenId> all;
  std::size_t questions = 0;
  for (std::string line; std::getline(file, line); ++questions) {
    const std::string question = nlohmann::json::parse(line)["question"];
    const auto ids = tokenizer->encode(question);
    ASSERT_TRUE(ids) << ids.error().message;
    all.insert(all.end(), ids->begin(), ids->end());
    EXPECT_EQ(*tokenizer->decode(*ids), question);
  }
  EXPECT_EQ(questions, 1319U);
  EXPECT_EQ(all.size(), 81760U);
  EXPECT_EQ(sha256(std::as_bytes(std::span(all))),
            "818d4de6f8254a00c2567b3a207b57fceb9171957be5764a2521aa2d2c529ad7");
}

}  // namespace
}  // namespace kvsim
