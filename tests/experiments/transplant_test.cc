// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/transplant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "softfloat/formats.h"
#include "tests/experiments/small_sequence.h"

/// State taken from one sequence into another, on caches of a few numbers.
namespace kvsim::experiments {
namespace {

using test::SmallSequence;

/// Which of the 24 numbers came from the donor.
std::vector<int> taken(const CacheMask& mask) {
  const SmallSequence donor(1);
  SmallSequence recipient(-1);
  EXPECT_TRUE(transplant(donor, recipient, mask));
  std::vector<int> indices;
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(std::abs(recipient.cells()[i]), static_cast<double>(i + 1));
    if (recipient.cells()[i] > 0) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

TEST(Transplant, TakesWhatTheMaskNames) {
  const CacheMask whole = whole_cache(SmallSequence(1).state_shape(), 3);
  EXPECT_EQ(taken(whole).size(), 24U);
  CacheMask mask = whole;
  mask.values = false;
  EXPECT_THAT(taken(mask), testing::ElementsAre(0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17));
  mask.layers = {1, 1};
  EXPECT_THAT(taken(mask), testing::ElementsAre(12, 13, 14, 15, 16, 17));
  mask.heads = {1, 1};
  EXPECT_THAT(taken(mask), testing::ElementsAre(15, 16, 17));
  mask.rows = {1, 2};
  EXPECT_THAT(taken(mask), testing::ElementsAre(16, 17));
  mask = whole;
  mask.keys = false;
  mask.rows = {2, 1};
  EXPECT_THAT(taken(mask), testing::ElementsAre(8, 11, 20, 23));
  mask.rows = {2, 0};
  EXPECT_TRUE(taken(mask).empty());
}

TEST(Transplant, RefusesOtherCaches) {
  const SmallSequence donor(1, softfloat::binary32);
  SmallSequence recipient(-1);
  CacheMask mask = whole_cache(recipient.state_shape(), 3);
  const auto other = transplant(donor, recipient, mask);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, testing::HasSubstr("another shape or format"));
  mask.heads = {1, 2};
  const auto heads = transplant(SmallSequence(1), recipient, mask);
  ASSERT_FALSE(heads);
  EXPECT_THAT(heads.error().message, testing::HasSubstr("accepted: 2 layers of 2 heads"));
}

Fork fork_of(double unit) { return {std::make_unique<SmallSequence>(unit), {5, 6, 7, 9}}; }

TEST(PatchedPass, TakesCacheAndHiddenStatesAndLeavesTheRecipientAlone) {
  Fork donor = fork_of(1);
  Fork recipient = fork_of(-1);
  const auto of_donor = donor.pass({.layer_values = true});
  const auto of_recipient = recipient.pass({.layer_values = true});
  ASSERT_TRUE(of_donor && of_recipient);
  // 300 = 1 + 2 + … + 24; the token is 9, the second layer adds 1.
  EXPECT_EQ(of_donor->logits[1], 310);
  EXPECT_EQ(of_recipient->logits[1], -290);
  const CacheMask whole = whole_cache(donor.sequence->state_shape(), 3);
  const auto logit = [&](const StatePatch& patch) {
    const auto patched = patched_pass(donor, *of_donor, recipient, patch);
    EXPECT_TRUE(patched);
    return patched->pass.logits[1];
  };
  EXPECT_EQ(logit({}), -290);
  EXPECT_EQ(logit({.cache = whole, .hidden = {}}), 310);
  EXPECT_EQ(logit({.cache = {}, .hidden = {1}}), 310);
  EXPECT_EQ(logit({.cache = {}, .hidden = {0}}), 310);  // 309, and 1 of the second layer
  CacheMask keys = whole;
  keys.values = false;
  // Keys sum to 1 + … + 6 + 13 + … + 18 = 114, values to 186.
  EXPECT_EQ(logit({.cache = keys, .hidden = {}}), 114 - 186 + 10);
  EXPECT_EQ(recipient.pass({})->logits[1], -290);
  const auto lacking = patched_pass(donor, EnginePass{}, recipient, {.cache = {}, .hidden = {1}});
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().message, testing::HasSubstr("hidden state behind layer 1"));
}

TEST(GreedyContinuation, FeedsWhatItChooses) {
  Fork fork = fork_of(1);  // its largest logit is always the one of token 1
  const auto tokens = greedy_continuation(fork, 2, 3);
  ASSERT_TRUE(tokens);
  EXPECT_THAT(*tokens, testing::ElementsAre(2, 1, 1));
  EXPECT_THAT(fork.tokens, testing::ElementsAre(5, 6, 7, 9, 2, 1));
  const auto& steps = dynamic_cast<const SmallSequence&>(*fork.sequence).steps;
  EXPECT_THAT(steps, testing::ElementsAre(PlanStep{4, 1, 4}, PlanStep{5, 1, 5}));
}

}  // namespace
}  // namespace kvsim::experiments
