// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kvsim::metrics {
namespace {

using statistics::Count;
using testing::HasSubstr;

TEST(Consistency, ByTheNumberOfRightAnswers) {
  EXPECT_EQ(*consistency_of({5, 5}), Consistency::always);
  EXPECT_EQ(*consistency_of({4, 5}), Consistency::sometimes);
  EXPECT_EQ(*consistency_of({1, 5}), Consistency::sometimes);
  EXPECT_EQ(*consistency_of({0, 5}), Consistency::never);
  EXPECT_EQ(*consistency_of({1, 1}), Consistency::always);
  EXPECT_EQ(*consistency_of({0, 1}), Consistency::never);
  EXPECT_EQ(to_text(Consistency::always), "always");
  EXPECT_EQ(to_text(Consistency::sometimes), "sometimes");
  EXPECT_EQ(to_text(Consistency::never), "never");
}

// Seven prompts by hand: the first arm is greedy (one run each), the second has three seeds.
TEST(Consistency, TableByHand) {
  const std::vector<Count> greedy = {{1, 1}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}};
  const std::vector<Count> sampled = {{3, 3}, {2, 3}, {0, 3}, {0, 3}, {0, 3}, {1, 3}, {3, 3}};
  const Result<ConsistencyTable> found = compare_consistency(greedy, sampled);
  ASSERT_TRUE(found) << found.error().message;
  using Row = std::array<std::int64_t, consistencies>;
  EXPECT_EQ(found->prompts[0], (Row{1, 1, 1}));  // always
  EXPECT_EQ(found->prompts[1], (Row{0, 0, 0}));  // sometimes
  EXPECT_EQ(found->prompts[2], (Row{1, 1, 2}));  // never
  EXPECT_EQ(found->of_first(Consistency::always), 3);
  EXPECT_EQ(found->of_first(Consistency::never), 4);
  EXPECT_EQ(found->of_second(Consistency::always), 2);
  EXPECT_EQ(found->of_second(Consistency::sometimes), 2);
  EXPECT_EQ(found->of_second(Consistency::never), 3);
  EXPECT_EQ(found->changed(), 4);
}

TEST(Consistency, SaysWhatItCannotTell) {
  EXPECT_EQ(consistency_of({0, 0}).error().kind, ErrorKind::cannot_tell);
  EXPECT_EQ(consistency_of({3, 2}).error().kind, ErrorKind::usage);
  EXPECT_THAT(consistency_of({3, 2}).error().message, HasSubstr("3 right of 2 runs"));
  const std::vector<Count> one = {{1, 1}};
  const std::vector<Count> two = {{1, 1}, {1, 1}};
  const std::vector<Count> empty = {{1, 1}, {0, 0}};
  EXPECT_THAT(compare_consistency(one, two).error().message, HasSubstr("1 prompts of one arm"));
  EXPECT_THAT(compare_consistency(two, empty).error().message, HasSubstr("prompt 1: a prompt"));
}

}  // namespace
}  // namespace kvsim::metrics
