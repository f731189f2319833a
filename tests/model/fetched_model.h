// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "softfloat/sha256.h"

/// What the tests of models that `kvsim fetch` has taken share.
namespace kvsim::test {

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

inline std::string fetched_model(const std::string& name) {
  std::string cache = variable("KVSIM_CACHE");
  if (cache.empty() && !variable("XDG_CACHE_HOME").empty()) {
    cache = variable("XDG_CACHE_HOME") + "/kvsim";
  }
  if (cache.empty()) cache = variable("HOME") + "/.cache/kvsim";
  return cache + "/models/" + name;
}

/// The token ids of every question of GSM8K, one question after the other, as int32.
struct ExpectedIds {
  std::size_t count = 0;
  std::string_view sha256;
};

/// Compares them, and decodes each question again.
inline void expect_gsm8k_ids(const std::string& folder, const ExpectedIds& expected) {
  const std::string shared = variable("KVSIM_SHARED");
  if (shared.empty()) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const auto tokenizer = Tokenizer::load(folder);
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
  EXPECT_EQ(all.size(), expected.count);
  EXPECT_EQ(sha256(std::as_bytes(std::span(all))), expected.sha256);
}

}  // namespace kvsim::test
