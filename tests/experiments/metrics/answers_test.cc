// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/answers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim::metrics {
namespace {

constexpr std::string_view none = "none";

std::string extracted(std::string_view text, AnswerRule rule) {
  return extract_answer(text, rule).value_or(std::string(none));
}

TEST(Answers, CanonicalNumbersByHand) {
  struct Row {
    std::string_view text, number;
  };
  for (const Row& row :
       std::vector<Row>{{"18", "18"},
                        {"$1,234.50", "1234.5"},
                        {"-$7.00", "-7"},
                        {"007", "7"},
                        {"0.50", "0.5"},
                        {".5", "0.5"},
                        {"12.", "12"},
                        {"12...", "12"},
                        {"100", "100"},
                        {"-0.0", "0"},
                        {"0", "0"},
                        {"1,", "1"},
                        {"123456789012345678901234567890", "123456789012345678901234567890"},
                        {"1.2.3", none},
                        {"", none},
                        {"-", none},
                        {"...", none},
                        {"$,", none},
                        {"1 2", none},
                        {"--1", none},
                        {"1e3", none}}) {
    EXPECT_EQ(canonical_number(row.text).value_or(std::string(none)), row.number) << row.text;
  }
}

TEST(Answers, BothRulesByHand) {
  struct Row {
    std::string_view text, marked, last;
  };
  for (const Row& row :
       std::vector<Row>{{"She makes 9 * 2 = $18 every day.\n#### 18", "18", "18"},
                        {"#### 18\nThat is 2 more than 16.", "18", "16"},
                        {"#### 5 or #### 6", "5", "6"},  // the first mark, the last number
                        {"#### -1,200.00", "-1200", "-1200"},
                        {"#### $18", none, "18"},  // the mark wants a digit behind it
                        {"#### none. #### 4", "4", "4"},
                        {"####18", none, "18"},
                        {"##### 18", "18", "18"},  // contains the mark
                        {"The answer is $1,250.", none, "1250"},
                        {"It took 3 days...", none, "3"},  // "..." has no digit
                        {"from 5-3 it is", none, "-3"},  // the pattern takes the sign, and so do we
                        {"a - 3", none, "3"},
                        {"8", none, "8"},
                        {"-8", none, "-8"},
                        {"1.2.3", none, none},
                        {"five", none, none},
                        {"", none, none},
                        {"####", none, none},
                        {"#### ", none, none},
                        {"#### -", none, none},
                        {"12 eggs at 2.50", none, "2.5"}}) {
    EXPECT_EQ(extracted(row.text, AnswerRule::marked), row.marked) << row.text;
    EXPECT_EQ(extracted(row.text, AnswerRule::last_number), row.last) << row.text;
  }
}

TEST(Answers, EndWhereTheNextQuestionBegins) {
  EXPECT_EQ(before_stop("It is 5.\nQuestion: 6 and 7?"), "It is 5.\n");
  EXPECT_EQ(before_stop("5<|im_end|>6</s>"), "5");
  EXPECT_EQ(before_stop("5</s>6<|im_end|>"), "5");
  EXPECT_EQ(before_stop("5<|endoftext|>6"), "5");
  EXPECT_EQ(before_stop("5"), "5");
  EXPECT_EQ(before_stop(""), "");
}

TEST(Answers, AreRightByValue) {
  constexpr std::string_view expected = "3 + 15 = <<3+15=18>>18\n#### 18";
  EXPECT_EQ(is_correct("... #### 18.00", expected, AnswerRule::marked), true);
  EXPECT_EQ(is_correct("... #### 180", expected, AnswerRule::marked), false);
  EXPECT_EQ(is_correct("it is 18", expected, AnswerRule::marked), false);
  EXPECT_EQ(is_correct("it is $18.", expected, AnswerRule::last_number), true);
  EXPECT_EQ(is_correct("it is 18\n\nQuestion: 7?", expected, AnswerRule::last_number), true);
  EXPECT_EQ(is_correct("Question: 18", expected, AnswerRule::last_number), false);
  EXPECT_EQ(is_correct("18", "no mark: 18", AnswerRule::last_number), std::nullopt);
}

// In all 1,319 problems of the test set the marked number is also the last, and an integer; two are
// negative, 14 are written with commas.
TEST(Answers, ReadTheTestSetOfGsm8k) {
  const char* shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  std::ifstream file(std::string(shared) + "/data/gsm8k/test.jsonl");
  ASSERT_TRUE(file);
  int problems = 0;
  int negative = 0;
  for (std::string line; std::getline(file, line); ++problems) {
    const std::string answer = nlohmann::json::parse(line).at("answer");
    const std::string number = extracted(answer, AnswerRule::marked);
    EXPECT_EQ(number.find_first_not_of("-0123456789"), std::string::npos) << number;
    if (number.starts_with('-')) ++negative;
    EXPECT_EQ(extracted(answer, AnswerRule::last_number), number) << answer;
    EXPECT_EQ(is_correct(answer, answer, AnswerRule::marked), true);
  }
  EXPECT_EQ(problems, 1319);
  EXPECT_EQ(negative, 2);
}

}  // namespace
}  // namespace kvsim::metrics
