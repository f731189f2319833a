// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/first_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/run/records.h"

namespace kvsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One prompt with arms "on" and "off" that choose these tokens.
Records records_of(const std::vector<std::int64_t>& on, const std::vector<std::int64_t>& off) {
  Records records;
  records.prompts.push_back(test::prompt_record());
  std::int64_t step = 0;
  for (const std::int64_t token : on)
    records.steps.push_back(test::step_record("on", step++, token));
  step = 0;
  for (const std::int64_t token : off) {
    records.steps.push_back(test::step_record("off", step++, token));
  }
  return records;
}

StepRecord& step_of(Records& records, const std::string& arm, std::int64_t step) {
  for (StepRecord& record : records.steps) {
    if (record.arm == arm && record.step == step) return record;
  }
  ADD_FAILURE();
  return records.steps[0];
}

PromptDifference compared(const Records& records) {
  const Result<RecordComparison> found = compare_records(records, "on", records, "off");
  EXPECT_TRUE(found) << found.error().message;
  return found->prompts.at(0);
}

TEST(FirstDifference, OfEqualRecordsIsNone) {
  const PromptDifference found = compared(records_of({5, 6, 7}, {5, 6, 7}));
  EXPECT_FALSE(found.state || found.layer || found.route || found.logits || found.token);
  EXPECT_EQ(found.first_steps, 3);
  EXPECT_EQ(found.state_digests, 9);
  EXPECT_EQ(found.layer_digests, 6);
  EXPECT_EQ(found.route_digests, 0);  // not recorded
  EXPECT_EQ(found.token_digests, 3);
  EXPECT_THAT(found.churn, IsEmpty());
  ASSERT_EQ(found.steps.size(), 3U);
  EXPECT_EQ(found.steps[2].kl->nats, 0);
}

TEST(FirstDifference, IsFoundAtEachLevel) {
  Records records = records_of({5, 6, 7, 8}, {5, 6, 9, 8});
  step_of(records, "off", 1).digests.state[1].digest = "other";
  step_of(records, "off", 1).digests.state[2].digest = "later";
  step_of(records, "off", 2).digests.state[0].digest = "later still";
  step_of(records, "on", 2).digests.layer[1] = "other";
  step_of(records, "on", 3).digests.layer[0] = "later";
  step_of(records, "on", 0).digests.route = {"r", "r"};
  step_of(records, "off", 0).digests.route = {"r", "other"};
  step_of(records, "off", 2).digests.token = "other";
  step_of(records, "off", 2).margin = Margin{0.125, 1};
  const PromptDifference found = compared(records);
  EXPECT_EQ(found.state, (StateDifference{1, 0, "v", 0, 3}));
  EXPECT_EQ(found.layer, (LayerDifference{2, 1}));
  EXPECT_EQ(found.route, (LayerDifference{0, 1}));
  EXPECT_EQ(found.logits, 2);
  EXPECT_EQ(found.token, (TokenFlip{2, 7, 9, Margin{0.25, 2}, Margin{0.125, 1}}));
}

TEST(FirstDifference, MatchesStateByItsPlaceNotItsRank) {
  Records records = records_of({5}, {5});
  std::vector<StateDigest>& state = step_of(records, "off", 0).digests.state;
  std::swap(state[0], state[2]);
  state.erase(state.begin() + 1);
  EXPECT_FALSE(compared(records).state);
  EXPECT_EQ(compared(records).state_digests, 2);
  state[1].position = 4;
  EXPECT_EQ(compared(records).state_digests, 1);
}

TEST(FirstDifference, TellsStepsOfOneContextFromStepsOfTwo) {
  Records records = records_of({5, 6, 7, 8}, {5, 9, 7, 8});
  PromptDifference found = compared(records);
  std::vector<bool> same;
  for (const StepComparison& step : found.steps) same.push_back(step.same_context);
  EXPECT_THAT(same, ElementsAre(true, true, false, false));
  // Under teacher forcing both are fed the tokens of "on", and every step compares arithmetic.
  records.prompts[0].run.teacher_forced = true;
  found = compared(records);
  EXPECT_EQ(found.token->step, 1);
  same.clear();
  for (const StepComparison& step : found.steps) same.push_back(step.same_context);
  EXPECT_THAT(same, ElementsAre(true, true, true, true));
}

TEST(FirstDifference, CountsChurnWhileTheContextsAreTheSame) {
  Records records = records_of({5, 6, 7}, {5, 6, 9});
  // Lists of the largest: step 0 {5, 6} and {5, 40}; step 1 {6, 7} and {40, 41}; step 2 {7, 8} and
  // {9, 10}, which still has one context; a step 3 would not.
  step_of(records, "off", 0).top = {{5, 1, -1}, {40, 0, -2}};
  step_of(records, "off", 1).top = {{40, 1, -1}, {41, 0, -2}};
  records.steps.push_back(test::step_record("on", 3, 1));
  records.steps.push_back(test::step_record("off", 3, 60));
  const PromptDifference found = compared(records);
  EXPECT_THAT(found.steps[0].entered, ElementsAre(40));
  EXPECT_THAT(found.steps[0].left, ElementsAre(6));
  EXPECT_THAT(found.steps[3].entered, ElementsAre(60, 61));
  EXPECT_THAT(found.churn, ElementsAre(ChurnRow{6, 0, 2}, ChurnRow{7, 0, 2}, ChurnRow{40, 2, 0},
                                       ChurnRow{8, 0, 1}, ChurnRow{9, 1, 0}, ChurnRow{10, 1, 0},
                                       ChurnRow{41, 1, 0}));
  EXPECT_EQ(found.steps[1].kl->common_tokens, 0);
}

TEST(FirstDifference, BoundsKlFromBelowAtEachStep) {
  Records records = records_of({5}, {5});
  const double ln2 = 0.69314718055994531;
  step_of(records, "on", 0).top = {{5, 0, -ln2}, {6, 0, -2 * ln2}};
  step_of(records, "off", 0).top = {{6, 0, -ln2}, {5, 0, -2 * ln2}};
  const PromptDifference found = compared(records);
  EXPECT_NEAR(found.steps[0].kl->nats, ln2 / 4, 1e-12);
  step_of(records, "off", 0).top.clear();
  EXPECT_FALSE(compared(records).steps[0].kl);
}

TEST(FirstDifference, ComparesTwoFilesPromptByPrompt) {
  Records first = records_of({5, 6}, {5, 6});
  Records second = records_of({5, 6, 7}, {});
  first.prompts.push_back(test::prompt_record(3));
  second.prompts.push_back(test::prompt_record(8));
  second.prompts.push_back(test::prompt_record(9));
  const Result<RecordComparison> found = compare_records(first, "off", second, "on");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->prompts.size(), 1U);
  EXPECT_EQ(found->prompts[0].first_steps, 2);
  EXPECT_EQ(found->prompts[0].second_steps, 3);
  EXPECT_EQ(found->prompts[0].steps.size(), 2U);
  EXPECT_EQ(found->only_in_first, 1);
  EXPECT_EQ(found->only_in_second, 2);
}

TEST(FirstDifference, SaysWhatCannotBeCompared) {
  const Records records = records_of({5}, {5});
  const auto message = [&](const Records& other, std::string_view arm) {
    const Result<RecordComparison> result = compare_records(records, "on", other, arm);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(message(records, "of"), HasSubstr("arm \"of\" has no steps; accepted: a label"));
  Records other = records_of({5}, {5});
  other.prompts[0].prompt_ids = {1};
  EXPECT_THAT(message(other, "off"),
              HasSubstr("prompt 0: the two records have other prompt_ids; "));
  other = records_of({5}, {5});
  other.prompts[0].prompt = 4;
  for (StepRecord& step : other.steps) step.prompt = 4;
  EXPECT_THAT(message(other, "off"), HasSubstr("no prompt is in both records; accepted: "));
  other = records_of({5}, {5});
  other.steps[1].top[0].logprob = 3;
  EXPECT_THAT(message(other, "off"),
              HasSubstr("prompt 0, step 0: q: the log-probability of token"));
}

}  // namespace
}  // namespace kvsim
