// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/margins_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kvsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(MarginsFile, ReadsPromptsOfTokens) {
  const MarginList list =
      parse_margins(R"({"model": "m", "text": "t", "columns": ["top logit", "margin"],
                        "prompts": [[[30.5, 1.25], [28, 0]], [[7, 2e-1]]], "other": [1, [2]]})",
                    "file")
          .value();
  EXPECT_EQ(list.model, "m");
  EXPECT_EQ(list.text, "t");
  EXPECT_THAT(list.margins, ElementsAre(1.25, 0, 0.2));
  EXPECT_THAT(list.top_logits, ElementsAre(30.5, 28, 7));
}

TEST(MarginsFile, ReadsListsAndPlainNumbers) {
  EXPECT_THAT(parse_margins("[1, 0.5, 3]", "file").value().margins, ElementsAre(1, 0.5, 3));
  const MarginList plain = parse_margins("0.5 1e-3,\n2\n", "file").value();
  EXPECT_THAT(plain.margins, ElementsAre(0.5, 1e-3, 2));
  EXPECT_THAT(plain.top_logits, IsEmpty());
}

TEST(MarginsFile, SaysWhatIsWrong) {
  const auto error = [](std::string_view text) {
    const Result<MarginList> result = parse_margins(text, "the file");
    EXPECT_FALSE(result) << text;
    if (result) return std::string();
    EXPECT_EQ(result.error().kind, ErrorKind::file);
    EXPECT_THAT(result.error().message, StartsWith("the file: "));
    return result.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("no margins"));
  EXPECT_THAT(error("{}"), HasSubstr("no margins"));
  EXPECT_THAT(error("1 2 three"), HasSubstr("\"three\" is no number"));
  EXPECT_THAT(error("1 -2"), HasSubstr("margin -2"));
  EXPECT_THAT(error("1 inf"), HasSubstr("margin inf"));
  EXPECT_THAT(error("[1, 2"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(error(std::string_view("[1, 2]\0[3]", 10)), HasSubstr("byte 7 is zero"));
  EXPECT_THAT(error("[1, 1e999]"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(error(R"({"prompts": [[[1, 2, 3]]]})"), HasSubstr("a token has 3 numbers"));
  EXPECT_THAT(error(R"({"prompts": [[[1]]]})"), HasSubstr("a token has 1 numbers"));
  EXPECT_THAT(load_margins("/no/such/file").error().message, HasSubstr("/no/such/file"));
}

TEST(MarginsFile, ReadsTheMeasuredMargins) {
  const char* const shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const MarginList list =
      load_margins(std::string(shared) + "/data/margins/smollm2-gsm8k.json").value();
  EXPECT_EQ(list.margins.size(), 3816U);
  EXPECT_EQ(list.top_logits.size(), 3816U);
  EXPECT_EQ(list.margins.front(), 1.112104);
  EXPECT_EQ(list.top_logits.front(), 30.34176);
}

}  // namespace
}  // namespace kvsim
