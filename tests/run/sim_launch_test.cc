// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsim {
namespace {

using testing::ElementsAre;

// A prompt of 5 tokens; every expected value is counted by hand.
Launch launch_of(std::vector<std::int64_t> neighbours, Padding padding = Padding::none,
                 std::int64_t width = 1) {
  return {5, std::move(neighbours), padding, width};
}

TEST(SimLaunch, OfASequenceAloneIsItsOwnRows) {
  const PassLaunch prompt = launch_of_pass(launch_of({}), {0, 5, 0});
  EXPECT_EQ(prompt.first, 0);
  EXPECT_EQ(prompt.rows, 5);
  EXPECT_EQ(prompt.all_rows, 5);
  EXPECT_EQ(prompt.padding, 0);
  EXPECT_EQ(prompt.drafts, 0);
  EXPECT_THAT(prompt.kv_lens, ElementsAre(5));
  const PassLaunch token = launch_of_pass(launch_of({}), {6, 1, 6});
  EXPECT_EQ(token.first, 6);
  EXPECT_EQ(token.rows, 1);
  EXPECT_THAT(token.kv_lens, ElementsAre(7));
}

TEST(SimLaunch, CountsTheRowsOfNeighbours) {
  // Prompts of 3 and 8 tokens beside ours.
  const PassLaunch prompt = launch_of_pass(launch_of({3, 8}), {0, 5, 0});
  EXPECT_EQ(prompt.all_rows, 5 + 3 + 8);
  EXPECT_THAT(prompt.kv_lens, ElementsAre(5, 3, 8));
  EXPECT_EQ(prompt.lengths().size(), 3U);
  EXPECT_TRUE(launch_of_pass(launch_of({5, 5}), {0, 5, 0}).lengths().empty());
  // The second generated token: everyone has one behind its prompt, and computes one more.
  const PassLaunch token = launch_of_pass(launch_of({3, 8}), {6, 1, 6});
  EXPECT_EQ(token.all_rows, 3);
  EXPECT_THAT(token.kv_lens, ElementsAre(7, 5, 10));
  // Without a cache everyone computes everything again.
  const PassLaunch again = launch_of_pass(launch_of({3, 8}), {0, 7, 0});
  EXPECT_EQ(again.all_rows, 7 + 5 + 10);
  EXPECT_THAT(again.kv_lens, ElementsAre(7, 5, 10));
  // A chunk in the middle of the prompt: rows 2 and 3.
  const PassLaunch chunk = launch_of_pass(launch_of({3, 8}), {2, 2, 2});
  EXPECT_EQ(chunk.all_rows, 2 + 1 + 2);
  EXPECT_THAT(chunk.kv_lens, ElementsAre(4, 3, 4));
}

TEST(SimLaunch, PaddedLeftMakesAllPromptsAsLongAsTheLongest) {
  const Launch launch = launch_of({3, 8}, Padding::left);
  const PassLaunch prompt = launch_of_pass(launch, {0, 5, 0});
  EXPECT_EQ(prompt.padding, 3);
  EXPECT_EQ(prompt.first, 0);
  EXPECT_EQ(prompt.rows, 8);
  EXPECT_EQ(prompt.all_rows, 24);
  EXPECT_THAT(prompt.kv_lens, ElementsAre(8, 8, 8));
  const PassLaunch token = launch_of_pass(launch, {5, 1, 5});
  EXPECT_EQ(token.first, 8);
  EXPECT_EQ(token.rows, 1);
  EXPECT_EQ(token.all_rows, 3);
  EXPECT_THAT(token.kv_lens, ElementsAre(9, 9, 9));
}

TEST(SimLaunch, PaddedRightChangesTheRowsOfThePromptOnly) {
  const Launch launch = launch_of({3, 8}, Padding::right);
  const PassLaunch prompt = launch_of_pass(launch, {0, 5, 0});
  EXPECT_EQ(prompt.padding, 0);
  EXPECT_EQ(prompt.rows, 5);
  EXPECT_EQ(prompt.all_rows, 24);
  EXPECT_THAT(prompt.kv_lens, ElementsAre(5, 3, 8));
  const PassLaunch token = launch_of_pass(launch, {5, 1, 5});
  EXPECT_EQ(token.all_rows, 3);
  EXPECT_THAT(token.kv_lens, ElementsAre(6, 4, 9));
}

TEST(SimLaunch, VerifiesDraftsBehindATokenAndNowhereElse) {
  const Launch launch = launch_of({3}, Padding::none, 4);
  const PassLaunch token = launch_of_pass(launch, {6, 1, 6});
  EXPECT_EQ(token.rows, 4);
  EXPECT_EQ(token.drafts, 3);
  EXPECT_EQ(token.all_rows, 8);
  EXPECT_THAT(token.kv_lens, ElementsAre(10, 8));
  EXPECT_EQ(launch_of_pass(launch, {0, 5, 0}).drafts, 0);
  EXPECT_EQ(launch_of_pass(launch, {4, 1, 4}).drafts, 0);  // a token of the prompt
  EXPECT_EQ(launch_of_pass(launch, {0, 7, 0}).drafts, 0);
}

}  // namespace
}  // namespace kvsim
