// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The rows of split rules against words that Hugging Face's tokenizers library cut
// (tests/golden/word-splits.json), and the four ways in which a match joins its neighbours.
#include "model/word_splitter.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kvsim {
namespace {

using Words = std::vector<std::string>;

Words split(std::span<const SplitRule> rules, std::string_view text) {
  const auto splitter = WordSplitter::make(rules, "f");
  EXPECT_TRUE(splitter) << splitter.error().message;
  const auto words = splitter->split(text);
  EXPECT_TRUE(words) << words.error().message;
  return {words->begin(), words->end()};
}

TEST(WordSplitter, RowsCutAsTheLibraryDoes) {
  std::ifstream file(KVSIM_SOURCE_DIR "/tests/golden/word-splits.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["rows"].size(), 4U);
  for (const auto& [name, texts] : golden["rows"].items()) {
    const WordRules* row = find_word_rules(name);
    ASSERT_NE(row, nullptr) << name;
    ASSERT_EQ(texts.size(), 15U);
    for (const auto& one : texts) {
      const auto text = one["text"].get<std::string>();
      EXPECT_EQ(split(row->rules, text), one["words"].get<Words>()) << name << ": " << text;
    }
  }
}

TEST(WordSplitter, Behaviours) {
  using enum SplitRule::Behaviour;
  const auto cut = [](SplitRule::Behaviour behaviour, bool invert) {
    const std::vector<SplitRule> rules = {
        {.pattern = "-", .literal = true, .behaviour = behaviour, .invert = invert}};
    return split(rules, "-a--b-");
  };
  EXPECT_EQ(cut(isolated, false), (Words{"-", "a", "-", "-", "b", "-"}));
  EXPECT_EQ(cut(removed, false), (Words{"a", "b"}));
  EXPECT_EQ(cut(removed, true), (Words{"-", "-", "-", "-"}));
  EXPECT_EQ(cut(merged_with_previous, false), (Words{"-", "a-", "-", "b-"}));
  EXPECT_EQ(cut(merged_with_next, false), (Words{"-a", "-", "-b", "-"}));
}

TEST(WordSplitter, WhiteSpaceInsideAndOutsideOfClasses) {
  const auto cut = [](std::string pattern) {
    const std::vector<SplitRule> rules = {{.pattern = std::move(pattern)}};
    return split(rules, "a \xe1\xa0\x8e");  // U+180E is no white space
  };
  EXPECT_EQ(cut(R"(\s)"), (Words{"a", " ", "\xe1\xa0\x8e"}));
  EXPECT_EQ(cut(R"([\s])"), (Words{"a", " ", "\xe1\xa0\x8e"}));
  EXPECT_EQ(cut(R"(\S+)"), (Words{"a", " ", "\xe1\xa0\x8e"}));
  EXPECT_EQ(cut(R"([^]\s]+)"), (Words{"a", " ", "\xe1\xa0\x8e"}));
  EXPECT_EQ(cut(R"(\\s)"), Words{"a \xe1\xa0\x8e"});
}

}  // namespace
}  // namespace kvsim
