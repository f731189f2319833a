// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/size_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> up_to(std::int64_t last) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(last));
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

// Size 1: rule "vector", 2 to 4 and 9: "small", 5 to 8: "large" with the bits of "small", 10 on:
// "split".
SizedOperator by_hand(int& calls) {
  SizedOperator sized{"rows", "projection", softfloat::binary16, {}, {}};
  sized.rule = [](std::int64_t size) -> Result<std::string> {
    if (size == 1) return std::string("vector");
    if (size >= 10) return std::string("split");
    return std::string(size >= 5 && size <= 8 ? "large" : "small");
  };
  sized.values = [&calls](std::int64_t size) -> Result<std::vector<float>> {
    ++calls;
    if (size == 1) return std::vector<float>{1, 2, 3};
    if (size >= 10) return std::vector<float>{1, 2, 4};
    return std::vector<float>{1, 2.5F, 3.5F};
  };
  return sized;
}

TEST(SizeClasses, GroupsBitsAndComputesARuleOnce) {
  int calls = 0;
  const SizeClasses found = classify_sizes(by_hand(calls), up_to(12), 1).value();
  EXPECT_EQ(calls, 4);
  ASSERT_EQ(found.classes.size(), 3U);
  EXPECT_THAT(found.classes[0].sizes, ElementsAre(IndexRange{1, 1}));
  EXPECT_THAT(found.classes[0].rules, ElementsAre("vector"));
  EXPECT_EQ(found.classes[0].from_reference.differing, 0);
  EXPECT_THAT(found.classes[1].sizes, ElementsAre(IndexRange{2, 9}));
  EXPECT_THAT(found.classes[1].rules, ElementsAre("small", "large"));
  EXPECT_EQ(found.classes[1].from_reference.differing, 2);
  EXPECT_THAT(found.classes[2].sizes, ElementsAre(IndexRange{10, 12}));
  EXPECT_EQ(found.classes[2].from_reference.differing, 1);
}

TEST(SizeClasses, TheReferencesClassComesFirst) {
  int calls = 0;
  const SizeClasses found = classify_sizes(by_hand(calls), up_to(12), 12).value();
  EXPECT_EQ(found.reference, 12);
  EXPECT_THAT(found.classes[0].rules, ElementsAre("split"));
  EXPECT_THAT(found.classes[0].sizes, ElementsAre(IndexRange{10, 12}));
  EXPECT_THAT(found.classes[1].sizes, ElementsAre(IndexRange{1, 1}));
}

TEST(SizeClasses, ErrorsPass) {
  int calls = 0;
  SizedOperator sized = by_hand(calls);
  sized.values = [](std::int64_t) -> Result<std::vector<float>> {
    return Error{ErrorKind::usage, "no"};
  };
  EXPECT_EQ(classify_sizes(sized, up_to(2), 1).error().message, "no");
}

}  // namespace
}  // namespace kvsim
