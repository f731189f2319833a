// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/prompts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using Ids = std::vector<TokenId>;

std::vector<Prompt> parse(std::string_view content, const PromptOptions& options = {}) {
  auto prompts = parse_prompts(content, "f", options);
  EXPECT_TRUE(prompts) << prompts.error().message;
  return prompts ? std::move(*prompts) : std::vector<Prompt>();
}

Prompt text(std::int64_t number, std::string_view content, std::string_view answer = "") {
  return {.number = number, .text = std::string(content), .ids = {}, .answer = std::string(answer)};
}

Prompt ids(std::int64_t number, Ids content) {
  return {.number = number, .text = {}, .ids = std::move(content), .answer = {}};
}

TEST(Prompts, Lines) {
  EXPECT_EQ(parse("a b\r\n\n  \n c\n"), (std::vector{text(1, "a b"), text(4, " c")}));
  EXPECT_EQ(parse("é"), std::vector{text(1, "é")});
  EXPECT_EQ(parse("a\n\nb\n", {.format = PromptFormat::text}), std::vector{text(1, "a\n\nb")});
}

TEST(Prompts, JsonLines) {
  const std::string content =
      "{\"question\":\"2 + 2?\",\"answer\":\"It is 4.\\n#### 4\"}\n"
      "{\"text\":\"t\",\"prompt\":\"p\",\"more\":{\"question\":\"no\"},\"list\":[1,\"a\",[{}]]}\n"
      "{\"prompt_ids\":[1,2,3],\"note\":null}\n";
  EXPECT_EQ(parse(content),
            (std::vector{text(1, "2 + 2?", "It is 4.\n#### 4"), text(2, "p"), ids(3, {1, 2, 3})}));
  EXPECT_EQ(parse(R"({"a.b":"x","text":"t"})", {.format = {}, .field = "a.b"}),
            std::vector{text(1, "x")});
}

TEST(Prompts, TokenIds) {
  const PromptOptions options{.format = PromptFormat::ids};
  EXPECT_EQ(parse(" 1 2\n[3, 2147483647]\n\n0\n", options),
            (std::vector{ids(1, {1, 2}), ids(2, {3, 2147483647}), ids(4, {0})}));
}

struct Case {
  std::string content;
  std::string message;
  PromptOptions options = {};
};

TEST(Prompts, Refused) {
  const PromptOptions as_ids{.format = PromptFormat::ids};
  const std::string id = "is no token id; accepted: whole numbers from 0 to 2147483647";
  const std::string array = "; accepted: a text, or an array of token ids";
  const std::vector<Case> cases = {
      {"", "has no prompt; accepted: at least one"},
      {" \n\t\n", "has no prompt; accepted: at least one"},
      {"a\nb\xff\n", "line 2: byte 2 is 0xff, which is not UTF-8; accepted: UTF-8"},
      {"1 -2", "line 1: \"-2\" " + id, as_ids},
      {"1\n2147483648", "line 2: \"2147483648\" " + id, as_ids},
      {"1.5", "line 1: \"1.5\" " + id, as_ids},
      {"[]", "line 1: no token ids; accepted: at least one", as_ids},
      {"{\"text\":\"a\"}\nb", "line 2: begins with \"b\"; accepted: one JSON object"},
      {"{\"text\":\"a\"", "line 1: byte 12 is not JSON; accepted: one JSON object"},
      {"{\"text\":\"a\"} {}", "line 1: byte 14 is not JSON; accepted: one JSON object"},
      {"{}",
       "line 1: has no prompt; accepted: a field question, prompt, text, prompt_ids, token_ids or "
       "ids"},
      {"{\"a\":1}", "line 1: has no field \"b\"; accepted: lines with it", {.field = "b"}},
      {"{\"text\":3}", "line 1: field \"text\" is a number" + array},
      {"{\"text\":null}", "line 1: field \"text\" is null" + array},
      {"{\"text\":{}}", "line 1: field \"text\" is an object" + array},
      {"{\"ids\":[1,[2]]}", "line 1: field \"ids\" holds an array in an array" + array},
      {"{\"ids\":[-1]}", "line 1: field \"ids\" holds -1; accepted: ids of at least 0"},
      {"{\"ids\":[1.0]}", "line 1: field \"ids\" holds \"1.0\"; accepted: whole numbers"},
      {"{\"ids\":[2147483648]}",
       "line 1: field \"ids\" holds 2147483648 as id 0; accepted: at most 1048576 ids from 0 to "
       "2147483647"},
      {"{\"ids\":[]}", "line 1: field \"ids\" is empty; accepted: at least one character or id"},
      {"{\"text\":\"\"}",
       "line 1: field \"text\" is empty; accepted: at least one character or id"},
      {"{\"text\":" + std::string(100000, '['),
       "line 1: field \"text\" holds an array in an array" + array},
      {"{\"x\":" + std::string(100000, '['),
       "line 1: byte 100006 is not JSON; accepted: one JSON object"},
      {std::string(16777217, 'a'), "line 1: 16777217 bytes; accepted: at most 16777216"},
  };
  for (const Case& row : cases) {
    const auto prompts = parse_prompts(row.content, "f", row.options);
    ASSERT_FALSE(prompts) << "accepted, though: " << row.message;
    EXPECT_EQ(prompts.error().kind, ErrorKind::file);
    EXPECT_EQ(prompts.error().message, "f: " + row.message);
    test::expect_one_line(prompts.error());
  }
}

TEST(Prompts, FewShotAndSurroundings) {
  const std::vector<Prompt> examples = {text(1, "1 + 1?", "#### 2"), text(2, "2 + 2?", "#### 4")};
  const auto prefix = few_shot_prefix(examples);
  ASSERT_TRUE(prefix);
  EXPECT_EQ(*prefix, "Question: 1 + 1?\nAnswer: #### 2\n\nQuestion: 2 + 2?\nAnswer: #### 4\n\n");
  std::vector<Prompt> prompts = {text(1, "a"), text(2, "b")};
  ASSERT_TRUE(surround_prompts(prompts, "<", ">"));
  EXPECT_EQ(prompts, (std::vector{text(1, "<a>"), text(2, "<b>")}));
  EXPECT_EQ(few_shot_prefix(prompts).error().message,
            "example of line 1 has no answer; accepted: JSON lines with question and answer");
  prompts = {ids(3, {1})};
  EXPECT_EQ(surround_prompts(prompts, "<", "").error().message,
            "prompt of line 3 has token ids and takes no prefix; accepted: texts of at most "
            "16777216 bytes");
}

TEST(Prompts, Sample) {
  const std::vector<std::uint64_t> keys = {5, 1, 9, 1, 0};
  const auto random = [&](std::size_t index) { return keys[index]; };
  EXPECT_EQ(sample_indices(5, 2, random), (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(sample_indices(5, 3, random), (std::vector<std::size_t>{1, 3, 4}));
  EXPECT_EQ(sample_indices(5, 4, random), (std::vector<std::size_t>{0, 1, 3, 4}));
  EXPECT_EQ(sample_indices(5, 9, random), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(sample_indices(5, 0, random).empty());
  std::vector<Prompt> prompts = {text(1, "a"), text(2, "b"), text(3, "c")};
  keep_prompts(prompts, std::vector<std::size_t>{0, 2});
  EXPECT_EQ(prompts, (std::vector{text(1, "a"), text(3, "c")}));
}

TEST(Prompts, IdsOfAPrompt) {
  const auto good = prompt_ids(ids(1, {0, 9}), nullptr, 10);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, (Ids{0, 9}));
  EXPECT_EQ(prompt_ids(ids(4, {0, 10}), nullptr, 10).error().message,
            "prompt of line 4: token id 10; accepted: 0 to 9");
  EXPECT_EQ(prompt_ids(text(1, "a"), nullptr, 10).error().message,
            "prompt of line 1: is text, and the model has no tokenizer; accepted: token ids");
}

TEST(Prompts, NoFile) {
  const auto prompts = load_prompts("no\nsuch");
  ASSERT_FALSE(prompts);
  EXPECT_EQ(prompts.error().message.substr(0, 10), "no\\x0asuch");
}

}  // namespace
}  // namespace kvsim
