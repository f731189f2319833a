// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Real vocabularies against ids that other programs computed: llama.cpp's test strings, llama2.c's
// story. They are read from the folder that KVSIM_SHARED names.
#include "model/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "model/prompts.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using Ids = std::vector<TokenId>;

std::string shared_file(std::string_view name) {
  const char* const shared = std::getenv("KVSIM_SHARED");
  return shared == nullptr ? "" : std::string(shared).append("/data/").append(name);
}

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

Tokenizer load(const std::string& path) {
  auto tokenizer = Tokenizer::load(path);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return std::move(*tokenizer);
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options = {}) {
  const auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *ids : Ids();
}

std::string decode(const Tokenizer& tokenizer, const Ids& ids, bool special = false) {
  const auto text = tokenizer.decode(ids, special);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : std::string();
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

struct LlamaCppStrings : ::testing::TestWithParam<const char*> {};

/// 46 strings and the ids that llama.cpp's converter wrote for them with the original tokenizer.
TEST_P(LlamaCppStrings, EqualIdsAndRoundTrip) {
  const std::string path = shared_file("tokenizers/ggml-vocab-") + GetParam() + ".gguf";
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer tokenizer = load(path);
  const auto strings = split(content_of(path + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(content_of(path + ".out"), "\n");
  ASSERT_EQ(strings.size(), 47U);  // the last of each is what follows the last separator
  ASSERT_EQ(lines.size(), 47U);
  for (std::size_t index = 0; index + 1 < strings.size(); ++index) {
    std::istringstream line(lines[index]);
    Ids expected;
    for (TokenId id = 0; line >> id;) expected.push_back(id);
    const Ids ids = encode(tokenizer, strings[index], {.add_bos = false});
    EXPECT_EQ(ids, expected) << testing::PrintToString(strings[index]);
    EXPECT_EQ(decode(tokenizer, ids), strings[index]);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, LlamaCppStrings,
                         ::testing::Values("gpt-2", "llama-spm", "starcoder"),
                         [](const auto& vocabulary) {
                           std::string name = vocabulary.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Tokenizer, FactsOfTheVocabularies) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer gpt2 = load(shared_file("tokenizers/ggml-vocab-gpt-2.gguf"));
  EXPECT_EQ(gpt2.vocabulary_size(), 50257);
  EXPECT_EQ(gpt2.kind(), "byte-level BPE");
  EXPECT_EQ(gpt2.eos(), 50256);
  EXPECT_FALSE(gpt2.adds_bos());
  EXPECT_EQ(gpt2.find_special("<|endoftext|>"), 50256);
  EXPECT_TRUE(gpt2.is_control(50256));
  EXPECT_EQ(gpt2.token_bytes(262), " the");
  const Tokenizer llama = load(shared_file("tokenizers/llama2.model"));
  EXPECT_EQ(llama.vocabulary_size(), 32000);
  EXPECT_EQ(llama.kind(), "SentencePiece");
  EXPECT_EQ(llama.bos(), 1);
  EXPECT_EQ(llama.eos(), 2);
  EXPECT_TRUE(llama.adds_bos());
  EXPECT_EQ(llama.token_bytes(13), "\n");
  EXPECT_EQ(llama.token_bytes(278), " the");
}

TEST(Tokenizer, SpecialTokensAreSplitOffFirst) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer gpt2 = load(shared_file("tokenizers/ggml-vocab-gpt-2.gguf"));
  // "Hello" 15496 and " world" 995 are in llama.cpp's lists.
  EXPECT_EQ(encode(gpt2, "Hello<|endoftext|> world"), (Ids{15496, 50256, 995}));
  EXPECT_EQ(encode(gpt2, "<|endoftext|>"), Ids{50256});
  const Ids as_text = encode(gpt2, "<|endoftext|>", {.special_tokens = false});
  EXPECT_GT(as_text.size(), 1U);
  EXPECT_EQ(decode(gpt2, as_text), "<|endoftext|>");
  EXPECT_EQ(decode(gpt2, {15496, 50256, 995}), "Hello world");
  EXPECT_EQ(decode(gpt2, {15496, 50256, 995}, true), "Hello<|endoftext|> world");
  const Tokenizer mistral = load(shared_file("tokenizers/mistral-v3.model"));
  const Ids turn = encode(mistral, "[INST] a [/INST]");
  ASSERT_GE(turn.size(), 4U);
  EXPECT_EQ(turn.front(), 1);
  EXPECT_EQ(turn[1], 3);      // [INST]
  EXPECT_EQ(turn.back(), 4);  // [/INST]
}

/// The two files hold the same vocabulary in two formats.
TEST(Tokenizer, LlamaModelFileAndGgufAgreeOnGsm8k) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer model = load(shared_file("tokenizers/llama2.model"));
  const Tokenizer gguf = load(shared_file("tokenizers/ggml-vocab-llama-spm.gguf"));
  const auto prompts = load_prompts(shared_file("gsm8k/test.jsonl"));
  ASSERT_TRUE(prompts) << prompts.error().message;
  ASSERT_EQ(prompts->size(), 1319U);
  for (std::size_t index = 0; index < prompts->size(); index += 5) {
    const Prompt& prompt = (*prompts)[index];
    const Ids ids = encode(model, prompt.text);
    ASSERT_EQ(ids, encode(gguf, prompt.text)) << prompt.text;
    ASSERT_EQ(decode(model, ids), prompt.text);
  }
}

TEST(Tokenizer, ByteLevelRoundTripOnGsm8k) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer tokenizer = load(shared_file("tokenizers/ggml-vocab-starcoder.gguf"));
  const auto prompts = load_prompts(shared_file("gsm8k/test.jsonl"));
  ASSERT_TRUE(prompts) << prompts.error().message;
  for (const Prompt& prompt : *prompts) {
    ASSERT_EQ(decode(tokenizer, encode(tokenizer, prompt.text)), prompt.text);
  }
}

TEST(Tokenizer, ByteFallback) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer llama = load(shared_file("tokenizers/llama2.model"));
  // A zero byte and U+10FFFF are no pieces: the space in front (29871), then byte b is id b + 3.
  const std::string text("\0\xf4\x8f\xbf\xbf", 5);
  const Ids ids = encode(llama, text, {.add_bos = false});
  EXPECT_EQ(ids, (Ids{29871, 3, 0xf4 + 3, 0x8f + 3, 0xbf + 3, 0xbf + 3}));
  EXPECT_EQ(decode(llama, ids), text);
}

/// llama2.c's model writes this story; its ids and its text come from two programs.
TEST(Tokenizer, Stories260K) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer tokenizer = load(shared_file("stories260K/tok512.bin"));
  EXPECT_EQ(tokenizer.vocabulary_size(), 512);
  const auto story = nlohmann::json::parse(content_of(shared_file("stories260K/greedy.json")));
  const Ids ids = story["ids"].get<Ids>();
  const auto text = story["text"].get<std::string>();
  ASSERT_EQ(ids.size(), 256U);
  EXPECT_EQ(decode(tokenizer, ids), text);
  EXPECT_EQ(encode(tokenizer, text, {.add_bos = false}), ids);
  EXPECT_EQ(encode(tokenizer, text).front(), 1);
}

TEST(Tokenizer, RefusesTextsAndIds) {
  if (std::getenv("KVSIM_SHARED") == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const Tokenizer llama = load(shared_file("tokenizers/llama2.model"));
  const auto text = llama.encode("ab\xff");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message,
            R"(text "ab\xff": byte 2 is 0xff, which is not UTF-8; accepted: UTF-8)");
  for (const TokenId id : {-1, 32000}) {
    const auto decoded = llama.decode(Ids{id});
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().message, "token id " + std::to_string(id) + "; accepted: 0 to 31999");
  }
}

}  // namespace
}  // namespace kvsim
