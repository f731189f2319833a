// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "experiments/studies/precision_figures.h"
#include "experiments/studies/precision_rows.h"
#include "experiments/studies/precision_text.h"
#include "experiments/study.h"
#include "tests/run/engine_runs.h"

namespace kvsim::experiments {
namespace {

constexpr PrecisionOptions options{.new_tokens = 10};

class PrecisionOfGolden : public testing::Test {
 protected:
  [[nodiscard]] StudyArm arm(std::string_view text) const {
    return prepare(*engine_, test::arm_of(text)).value();
  }
  [[nodiscard]] static ReferenceText greedy(const StudyArm& arm) {
    return reference_text(arm, test::prompt, options).value();
  }
  [[nodiscard]] static PrecisionText run(const PrecisionArms& arms,
                                         const ReferenceText& reference) {
    return precision_text(arms, test::prompt, reference, options).value();
  }

 private:
  std::unique_ptr<Engine> engine_ = test::engine_of("llama-llama3");
};

TEST_F(PrecisionOfGolden, AReferenceAgreesWithItself) {
  const StudyArm same = arm("live");
  const ReferenceText reference = greedy(same);
  const PrecisionText text = run({&same, nullptr, 0}, reference);
  EXPECT_EQ(reference.tokens.size(), 10U);
  EXPECT_EQ(text.base, reference.tokens);
  EXPECT_EQ(text.tokens, reference.tokens);
  EXPECT_TRUE(text.head.empty());
  for (const double kl : text.kl) EXPECT_EQ(kl, 0);
  for (const double p : text.top1) EXPECT_GT(p, 1.0 / 512);
}

// Its own text is the one that it would write alone, wherever it leaves the reference.
TEST_F(PrecisionOfGolden, OwnTextsAreThoseOfTheArmAlone) {
  const StudyArm right = arm("live");
  const ReferenceText wrong = greedy(arm("live:plant=scale-doubled"));
  const std::vector<std::int64_t> alone = greedy(right).tokens;
  ASSERT_NE(wrong.tokens, alone);
  const PrecisionText text = run({&right, nullptr, 0}, wrong);
  EXPECT_EQ(text.tokens, alone);
  EXPECT_EQ(text.top1.size(), alone.size());
  EXPECT_EQ(text.base.size(), wrong.tokens.size());
}

// The second head counts up to its margin: never, or always.
TEST_F(PrecisionOfGolden, TheSecondHeadCountsUpToItsMargin) {
  const StudyArm base = arm("live");
  const StudyArm head = arm("live:plant=scale-doubled");  // stands for another head
  const ReferenceText reference = greedy(base);
  const PrecisionText never = run({&base, &head, -1}, reference);
  EXPECT_EQ(never.tokens, reference.tokens);
  EXPECT_EQ(never.base, reference.tokens);
  EXPECT_NE(never.head, reference.tokens);
  const PrecisionText always = run({&base, &head, 1e300}, reference);
  EXPECT_EQ(always.tokens, greedy(head).tokens);
  EXPECT_EQ(always.head, never.head);
  EXPECT_EQ(always.base, never.base);
}

Json side(std::vector<std::int64_t> base, std::vector<std::int64_t> tokens) {
  return {{"base", base},         {"head", {7, 8, 9, 9}},        {"margin_ulps", {0, 2, 1, 0.5}},
          {"kl", {0, 0.5, 0, 0}}, {"tokens", std::move(tokens)}, {"top1", {0.5, 0.5, 0.5, 0.5}},
          {"correct", true}};
}

StudyRecords records() {
  Json rows = {
      {"row",
       {{"on", side({7, 8, 9, 9}, {7, 8, 9, 9})}, {"off", side({1, 8, 2, 9}, {7, 8, 9, 1})}}},
      {"other", {{"left_out", "the engine has none"}}}};
  Json values = {{"reference", {{"dispatch", "widest"}, {"tokens", {7, 8, 9, 9}}}},
                 {"rows", std::move(rows)}};
  return {{}, {{{}, values}, {{}, values}}};
}

// Off differs from the reference at steps 0 and 2, whose margins are 0 and 1.
TEST(PrecisionFigures, CountStepsByTheMargin) {
  const auto mean = [](const std::vector<std::vector<double>>& prompts) {
    return *mean_over_prompts(prompts, 0).value().mean;
  };
  const PrecisionSteps none = precision_steps(records(), "row", {});
  EXPECT_EQ(mean(none.agree), 0.75);
  EXPECT_EQ(mean(none.flip), 0.5);
  EXPECT_EQ(mean(none.head), 0);
  const PrecisionSteps ties = precision_steps(records(), "row", 0);
  EXPECT_EQ(mean(ties.agree), 0.875);
  EXPECT_EQ(mean(ties.flip), 0.25);
  EXPECT_EQ(mean(ties.head), 0.25);
  const PrecisionSteps one = precision_steps(records(), "row", 1);
  EXPECT_EQ(mean(one.agree), 1);
  EXPECT_EQ(mean(one.flip), 0);
  EXPECT_EQ(mean(one.head), 0.75);
}

TEST(PrecisionFigures, DescribeTexts) {
  const PrecisionTexts texts = precision_texts(records(), "row").value();
  EXPECT_EQ(texts.texts, 2);
  EXPECT_EQ(texts.parted, 2);
  EXPECT_EQ(*texts.div_index, 3);
  EXPECT_EQ(texts.steps, 16);
  EXPECT_EQ(texts.kl, 0.125);
  EXPECT_EQ(texts.largest_kl, 0.5);
  EXPECT_EQ(texts.answers, 2);
  EXPECT_EQ(texts.metrics.std_at_acc, 0);
}

TEST(PrecisionFigures, SayWhatWasLeftOut) {
  const StudySummary summary = summarize(*study_named("precision").value(), records()).value();
  EXPECT_EQ(summary.headline, "Of 2 pairs of texts with and without the cache differ: 2 row.");
  EXPECT_EQ(summary.result.at("left_out").at(0), "other left out: the engine has none");
  EXPECT_EQ(summary.result.at("row").at("flips").at("value"), 0);
  EXPECT_EQ(summary.result.at("row").at("margins").at(0).at("flips").at("value"), 0.5);
  EXPECT_FALSE(summarize(*study_named("precision").value(), {}));
}

}  // namespace
}  // namespace kvsim::experiments
