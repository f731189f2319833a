// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsim {
namespace {

TEST(Quote, KeepsPrintableText) { EXPECT_EQ(quote("model.layers.0 ~"), "\"model.layers.0 ~\""); }

TEST(Quote, EscapesWhatCouldForgeALine) {
  EXPECT_EQ(quote("a\nb\x1b\"\\\x7f"), R"("a\x0ab\x1b\x22\x5c\x7f")");
  EXPECT_EQ(quote("\u202e"), R"("\xe2\x80\xae")");
  EXPECT_EQ(quote(std::string(1, '\0')), R"("\x00")");
}

TEST(Quote, CutsLongTextAndNamesItsLength) {
  EXPECT_EQ(quote("abcdef", 6), "\"abcdef\"");
  EXPECT_EQ(quote("abcdefg", 6), "\"abcdef\"... (7 bytes)");
}

TEST(QuotePath, KeepsForeignLettersAndEscapesControlBytes) {
  EXPECT_EQ(quote_path("/d/é.safetensors"), "/d/é.safetensors");
  EXPECT_EQ(quote_path("a\nb\\"), R"(a\x0ab\x5c)");
}

}  // namespace
}  // namespace kvsim
