// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/run_results.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/run/records.h"

namespace kvsim {
namespace {

/// A prompt whose tokens part at step 2; the logits differ from step 1 on. Worked out by hand.
RunResults parted() {
  RunResults results;
  results.add(test::prompt_record());
  const std::int64_t tokens[2][4] = {{5, 6, 7, 8}, {5, 6, 9, 9}};
  for (std::int64_t step = 0; step < 4; ++step) {
    StepRecord on = test::step_record("on", step, tokens[0][step]);
    on.margin = Margin{0.25 * static_cast<double>(step), 1};
    results.add(on);
    results.add(test::step_record("off", step, tokens[1][step]));
    ComparisonRecord pair = test::comparison_record(step);
    pair.same_context = step < 3;
    pair.kl = step == 0 ? 0 : static_cast<double>(step) * 0.5;
    pair.js = pair.kl.value() / 4;
    pair.differing_logits = step;
    pair.largest_logit_difference = static_cast<double>(step);
    pair.top_two_error = -0.125 * static_cast<double>(step);
    results.add(pair);
  }
  return results;
}

TEST(RunResults, KeepsStepsAfterOtherTokensApart) {
  const RunResults results = parted();
  ASSERT_EQ(results.prompts().size(), 1U);
  EXPECT_EQ(results.prompts()[0].steps[1].size(), 4U);
  EXPECT_TRUE(results.prompts()[0].steps[0][0].top.empty());
  const PairSummary summary = summarize_pair(results.prompts()[0], 1);
  EXPECT_EQ(summary.steps, 3);
  EXPECT_EQ(summary.equal_steps, 1);
  EXPECT_EQ(summary.token_changes, 1);
  EXPECT_EQ(summary.first_logits, 1);
  ASSERT_TRUE(summary.flip);
  EXPECT_EQ(summary.flip->step, 2);
  EXPECT_EQ(summary.flip->first, 7);
  EXPECT_EQ(summary.flip->second, 9);
  EXPECT_EQ(summary.flip->first_margin, (Margin{0.5, 1}));
  EXPECT_EQ(summary.flip->second_margin, (Margin{0.25, 2}));
  EXPECT_EQ(summary.flip->top_two_error, -0.25);
  EXPECT_EQ(summary.largest_logit_difference, 2);
  EXPECT_EQ(summary.largest_kl, 1);
  EXPECT_EQ(summary.largest_js, 0.25);
  EXPECT_EQ(summary.kl.mean(), 0.5);
  EXPECT_EQ(summary.kl_after.mean(), 1.5);
  EXPECT_EQ(summary.kl_after.steps, 1);
}

TEST(RunResults, AddPromptsUp) {
  PairSummary first = summarize_pair(parted().prompts()[0], 1);
  PairSummary second;
  second.steps = 5;
  second.equal_steps = 5;
  for (int step = 0; step < 5; ++step) second.kl.add(0.0);
  PairTotal total = total_of({first, second});
  EXPECT_EQ(total.prompts, 2);
  EXPECT_EQ(total.prompts_with_difference, 1);
  EXPECT_EQ(total.prompts_with_flip, 1);
  EXPECT_EQ(total.sum.steps, 8);
  EXPECT_EQ(total.sum.equal_steps, 6);
  EXPECT_EQ(total.sum.kl.mean(), 1.5 / 8);
  EXPECT_EQ(total.sum.largest_kl, 1);
  second.kl.add(std::nullopt);
  EXPECT_EQ(total_of({second}).sum.kl.mean(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(total_of({}).sum.kl.mean(), 0);
}

}  // namespace
}  // namespace kvsim
