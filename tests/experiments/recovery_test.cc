// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/recovery.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

/// Recoveries against values worked out by hand.
namespace kvsim::experiments {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Recovery, IsAShareOfTheBaseAndUndefinedWithoutOne) {
  EXPECT_EQ(recovery_percent(0.5, 0), 100);
  EXPECT_EQ(recovery_percent(0.3, 0.3), 0);
  EXPECT_EQ(recovery_percent(0.5, 0.625), -25);
  EXPECT_FALSE(recovery_percent(0, 0));
  EXPECT_FALSE(recovery_percent(0, 0.5));
  EXPECT_FALSE(recovery_percent(1, infinity));
  EXPECT_FALSE(recovery_percent(infinity, 1));
}

// Bases 1 and 3, patched 0.5 and 3, and one prompt without a base. Of the four draws of two prompts
// (one of each twice, each twice once) the pooled recoveries are 50, 12.5, 12.5 and 0.
TEST(Recovery, OfPromptsIsPooledAndAveraged) {
  const auto recovery = recovery_of(std::vector<RecoveryPair>{{1, 0.5}, {3, 3}, {0, 0.25}});
  ASSERT_TRUE(recovery);
  EXPECT_EQ(recovery->defined, 2);
  EXPECT_EQ(recovery->undefined, 1);
  ASSERT_TRUE(recovery->pooled && recovery->mean && recovery->median);
  EXPECT_EQ(recovery->pooled->percent, 12.5);
  EXPECT_EQ(recovery->pooled->interval, (statistics::Estimate{12.5, 0, 50}));
  EXPECT_EQ(recovery->mean->percent, 25);
  EXPECT_EQ(recovery->mean->interval, (statistics::Estimate{25, 0, 50}));
  EXPECT_EQ(*recovery->median, 25);
  EXPECT_EQ(recovery_cell(recovery->pooled).text, "12.5 (0.0 to 50.0)");
}

TEST(Recovery, OfOnePromptHasNoIntervalAndOfNoneNoValue) {
  const auto one = recovery_of(std::vector<RecoveryPair>{{1, 1.25}});
  ASSERT_TRUE(one && one->pooled);
  EXPECT_EQ(one->pooled->percent, -25);
  EXPECT_FALSE(one->pooled->interval);
  EXPECT_EQ(recovery_cell(one->pooled).text, "-25.0");
  const auto none = recovery_of(std::vector<RecoveryPair>{{0, 0}});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->pooled);
  EXPECT_EQ(recovery_cell(none->pooled).text, "-");
  EXPECT_EQ(json_of(*none).at("mean"), nullptr);
  EXPECT_EQ(recovery_cell(RecoveryFigure{-0.001, {}}).text, "0.0");
}

}  // namespace
}  // namespace kvsim::experiments
