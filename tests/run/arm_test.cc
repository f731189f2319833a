// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/arm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kvsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Arm parsed(std::string_view text) {
  const Result<Arm> arm = parse_arm(text);
  EXPECT_TRUE(arm) << arm.error().message;
  return arm ? *arm : Arm{};
}

std::string message(std::string_view text) {
  const Result<Arm> arm = parse_arm(text);
  return arm ? "accepted as " + to_text(*arm) : arm.error().message;
}

TEST(ParseArm, KnowsEveryConstructor) {
  EXPECT_EQ(parsed("live").constructor, CacheConstructor::live);
  EXPECT_EQ(parsed("on"), parsed("live"));
  EXPECT_EQ(parsed("token-wise").constructor, CacheConstructor::token_wise);
  EXPECT_EQ(parsed("all-token-wise").constructor, CacheConstructor::all_token_wise);
  EXPECT_EQ(parsed("one-shot").constructor, CacheConstructor::one_shot);
  EXPECT_EQ(parsed("off").constructor, CacheConstructor::off);
  const Arm chunked = parsed("chunked(64)");
  EXPECT_EQ(chunked.constructor, CacheConstructor::chunked);
  EXPECT_EQ(chunked.rows, 64);
  EXPECT_EQ(parsed("aligned-chunk(16)").constructor, CacheConstructor::aligned_chunk);
  const Arm hit = parsed("prefix-hit(100,16)");
  EXPECT_EQ(hit.constructor, CacheConstructor::prefix_hit);
  EXPECT_EQ(hit.rows, 100);
  EXPECT_EQ(hit.block, 16);
}

TEST(ParseArm, SplitsSettingsAtCommasOutsideParentheses) {
  const Arm arm = parsed(
      "on:linear.m1=split(4,partials=bf16,running=bf16),dispatch=h100-fa3,a=f(g(x,y),z)@first");
  EXPECT_EQ(arm.label, "first");
  EXPECT_THAT(arm.settings,
              ElementsAre(ArmSetting{"a", "f(g(x,y),z)"}, ArmSetting{"dispatch", "h100-fa3"},
                          ArmSetting{"linear.m1", "split(4,partials=bf16,running=bf16)"}));
  EXPECT_EQ(to_text_with_label(arm),
            "live:a=f(g(x,y),z),dispatch=h100-fa3,linear.m1=split(4,partials=bf16,running=bf16)"
            "@first");
}

TEST(ParseArm, SplitsAtSignsOutsideParenthesesOnly) {
  const Arm arm = parsed("prefix-hit(8,4):k=f(a@b:c)@x");
  EXPECT_THAT(arm.settings, ElementsAre(ArmSetting{"k", "f(a@b:c)"}));
  EXPECT_EQ(arm.label, "x");
  EXPECT_THAT(parsed("off:k=a:b=c").settings, ElementsAre(ArmSetting{"k", "a:b=c"}));
}

TEST(ParseArm, GivesTheCanonicalTextAsLabelWhereThereIsNone) {
  EXPECT_EQ(parsed("on").label, "live");
  EXPECT_EQ(parsed("on@on").label, "on");
  EXPECT_EQ(parsed("off:b=2,a=1").label, "off:a=1,b=2");
  EXPECT_EQ(to_text_with_label(parsed("off:b=2,a=1")), "off:a=1,b=2");
}

TEST(ParseArm, ReadsWhatItPrints) {
  for (const char* text : {"live", "on@on", "chunked(7):x=1@a+b", "prefix-hit(3,2):z=f(1,2),y=(,)",
                           "all-token-wise:k=v", "aligned-chunk(2147483648)"}) {
    const Arm arm = parsed(text);
    EXPECT_EQ(parsed(to_text_with_label(arm)), arm) << text;
  }
}

TEST(ParseArm, SaysWhatIsWrong) {
  EXPECT_THAT(message(""), HasSubstr("arm \"\": constructor \"\"; accepted: on, live, token-wise"));
  EXPECT_THAT(message("one-shoot"), HasSubstr("(did you mean one-shot?)"));
  EXPECT_THAT(message("chunked"),
              HasSubstr("constructor \"chunked\"; accepted: chunked(c), whole"));
  EXPECT_THAT(message("chunked(0)"), HasSubstr("accepted: chunked(c), whole numbers from 1"));
  EXPECT_THAT(message("chunked(4,4)"), HasSubstr("accepted: chunked(c)"));
  EXPECT_THAT(message("chunked(4)x"), HasSubstr("accepted: chunked(c)"));
  EXPECT_THAT(message("chunked(2147483649)"), HasSubstr("from 1 to 2147483648"));
  EXPECT_THAT(message("prefix-hit(4)"), HasSubstr("accepted: prefix-hit(n,b)"));
  EXPECT_THAT(message("live(3)"), HasSubstr("accepted: live without parentheses"));
  EXPECT_THAT(message("on:"), HasSubstr("setting \"\"; accepted: KEY=VALUE"));
  EXPECT_THAT(message("on:a=1,"), HasSubstr("setting \"\"; accepted: KEY=VALUE"));
  EXPECT_THAT(message("on:a="), HasSubstr("setting \"a=\"; accepted: KEY=VALUE"));
  EXPECT_THAT(message("on:a/b=1"), HasSubstr("key \"a/b\"; accepted: 1 to 64 letters"));
  EXPECT_THAT(message("on:a=1,a=2"), HasSubstr("key \"a\" stands twice; accepted: each key once"));
  EXPECT_THAT(message("on@"), HasSubstr("label \"\"; accepted: 1 to 64 letters"));
  EXPECT_THAT(message("on@a@b"), HasSubstr("label \"a@b\"; accepted: "));
  EXPECT_THAT(message("on:a=f(1"), HasSubstr("a \"(\" is never closed; accepted: balanced"));
  EXPECT_THAT(message("on:a=1)"), HasSubstr("\")\" at position 7 closes nothing; accepted: "));
  EXPECT_THAT(message("on:a=1 2"), HasSubstr("\" \" at position 7; accepted: printable ASCII"));
  EXPECT_THAT(message("on\n"), HasSubstr("arm \"on\\x0a\": \"\\x0a\" at position 3; accepted: "));
  EXPECT_THAT(message(std::string(5000, 'a')), HasSubstr("5000 bytes; accepted: at most 4096"));
}

}  // namespace
}  // namespace kvsim
