// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/pair_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "run/run_results.h"
#include "tests/experiments/fake_setup.h"

/// Two arms side by side, against two runs of the run loop: one along the first arm's tokens, one
/// in which each arm is fed its own.
namespace kvsim::experiments {
namespace {

PromptResult run_of(const test::FakeSetup& fake, const StudyPrompt& prompt,
                    const Sampling& sampling, bool forced) {
  RunOptions options;
  options.arms = {fake.setup.on, fake.setup.off};
  options.sampling = sampling;
  options.max_new_tokens = fake.setup.new_tokens;
  options.teacher_forced = forced;
  options.layer_digests = false;
  auto run = PreparedRun::make(fake.engine, std::move(options), {prompt.prompt});
  EXPECT_TRUE(run);
  RunResults results;
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    results.add(line);
    return true;
  };
  EXPECT_TRUE(run->run(output));
  return results.prompts().front();
}

TEST(PairText, IsWhatTheRunLoopSays) {
  const test::FakeSetup fake(40);
  int flips = 0;
  int apart = 0;
  for (const Strategy& strategy : fake.setup.strategies) {
    for (const StudyPrompt& prompt : fake.setup.prompts) {
      const auto on = prepare(fake.engine, fake.setup.on);
      const auto off = prepare(fake.engine, fake.setup.off);
      ASSERT_TRUE(on && off);
      const auto text =
          compare_texts(*on, *off, prompt.prompt.ids,
                        {.sampling = strategy.sampling,
                         .prompt_number = static_cast<std::uint64_t>(prompt.prompt.number),
                         .new_tokens = fake.setup.new_tokens,
                         .stop_tokens = fake.engine.fake.stop_tokens});
      ASSERT_TRUE(text) << text.error().message;

      const PromptResult forced = run_of(fake, prompt, strategy.sampling, true);
      ASSERT_EQ(text->forced.size(), forced.steps[0].size());
      for (std::size_t i = 0; i < text->forced.size(); ++i) {
        EXPECT_EQ(text->first_tokens[i], forced.steps[0][i].token);
        EXPECT_EQ(text->forced[i].kl, forced.pairs[1][i].kl);
        EXPECT_EQ(text->forced[i].js, forced.pairs[1][i].js);
        EXPECT_EQ(text->forced[i].difference.differing, forced.pairs[1][i].differing_logits);
        EXPECT_EQ(text->forced[i].difference.largest, forced.pairs[1][i].largest_logit_difference);
        EXPECT_EQ(text->forced[i].top_two_error, forced.pairs[1][i].top_two_error);
        EXPECT_EQ(text->forced[i].first_margin, forced.steps[0][i].margin);
        EXPECT_EQ(text->forced[i].second_margin, forced.steps[1][i].margin);
      }

      const PromptResult free = run_of(fake, prompt, strategy.sampling, false);
      ASSERT_EQ(text->second_tokens.size(), free.steps[1].size());
      for (std::size_t i = 0; i < free.steps[1].size(); ++i) {
        EXPECT_EQ(text->second_tokens[i], free.steps[1][i].token);
      }
      std::vector<double> kl;
      for (const ComparisonRecord& pair : free.pairs[1]) {
        if (!pair.same_context) kl.push_back(pair.kl.value());
      }
      EXPECT_EQ(text->kl_apart, kl);
      const PairSummary summary = summarize_pair(free, 1);
      ASSERT_EQ(text->flip.has_value(), summary.flip.has_value());
      if (text->flip && summary.flip) {
        EXPECT_EQ(*text->flip, summary.flip->step);
        ++flips;
      }
      apart += static_cast<int>(kl.size());
    }
  }
  EXPECT_GT(flips, 5);   // the test has something to say
  EXPECT_LT(flips, 75);  // of both kinds
  EXPECT_GT(apart, 10);
}

}  // namespace
}  // namespace kvsim::experiments
