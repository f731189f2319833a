// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/number_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kvsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NumberList, NumbersAndRanges) {
  EXPECT_THAT(parse_integer_list("--chunks", "512,512,37", 1, 1024, 8).value(),
              ElementsAre(512, 512, 37));
  EXPECT_THAT(parse_integer_list("--rows", "1", 1, 1024, 8).value(), ElementsAre(1));
  EXPECT_THAT(parse_integer_list("--verify-width", "2..5,9", 1, 1024, 8).value(),
              ElementsAre(2, 3, 4, 5, 9));
}

TEST(NumberList, Errors) {
  const auto message = [](std::string_view text) {
    const auto result = parse_integer_list("--rows", text, 1, 100, 4);
    EXPECT_FALSE(result) << text;
    return result ? std::string() : result.error().message;
  };
  for (const std::string_view text : {"", ",", "1,", "a", "1..", "..2", "1..2..3", "1 2"}) {
    EXPECT_THAT(message(text), HasSubstr("--rows"));
  }
  EXPECT_THAT(message("0"), HasSubstr("1 to 100"));
  EXPECT_THAT(message("101"), HasSubstr("1 to 100"));
  EXPECT_THAT(message("5..2"), HasSubstr("from its smaller number"));
  EXPECT_THAT(message("1..5"), HasSubstr("at most 4 numbers"));
  EXPECT_THAT(message("1,2,3,4,5"), HasSubstr("at most 4 numbers"));
  EXPECT_THAT(message("1..100,1..100"), HasSubstr("at most 4 numbers"));
}

}  // namespace
}  // namespace kvsim
