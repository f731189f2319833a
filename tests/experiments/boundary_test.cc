// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "experiments/studies/boundary_law.h"
#include "experiments/studies/boundary_sources.h"
#include "tests/experiments/fake_setup.h"

/// What `boundary` says of records that were written by hand, and of arms that are equal.
namespace kvsim::experiments {
namespace {

struct HandStep {
  double margin = 0;
  double error = 0;
  double largest = 0;
  bool flips = false;
  double kl = 0;
};

StudyRecords::Unit text(const std::string& source, std::int64_t prompt,
                        const std::vector<HandStep>& steps, const Json& flip = nullptr,
                        const std::vector<double>& apart = {}) {
  Json forced = {{"kl", Json::array()},
                 {"js", Json::array()},
                 {"largest_logit_difference", Json::array()},
                 {"argmax_differs", Json::array()},
                 {"on_margin", Json::array()},
                 {"on_margin_ulps", Json::array()},
                 {"off_margin", Json::array()},
                 {"top_two_error", Json::array()}};
  for (const HandStep& step : steps) {
    forced["kl"].push_back(step.kl);
    forced["js"].push_back(step.kl);
    forced["largest_logit_difference"].push_back(step.largest);
    forced["argmax_differs"].push_back(step.flips);
    forced["on_margin"].push_back(step.margin);
    forced["on_margin_ulps"].push_back(8 * step.margin);
    forced["off_margin"].push_back(step.margin);
    forced["top_two_error"].push_back(step.error);
  }
  return {{source, prompt, 0, 0},
          {{"against", "off"},
           {"tokens", Json::array()},
           {"flip", flip},
           {"forced", std::move(forced)},
           {"kl_apart", apart}}};
}

StudySummary summary_of(const StudyRecords& records) {
  auto summary = make_boundary()->summarize(records);
  EXPECT_TRUE(summary) << summary.error().message;
  return summary ? *summary : StudySummary();
}

TEST(Boundary, CountsFlipsByMarginAndReach) {
  const StudyRecords records{
      {},
      {text("cache", 0,
            {{0, -.5, .5, true}, {1, 0, .25}, {.125, .25, .25}, {.25, -.25, .25, true}}),
       text("cache", 1,
            {{0, 0, .5}, {3, .5, .5}, {.125, -.125, .25, true}, {.5, .25, .25, true}})}};
  const StudySummary summary = summary_of(records);
  const Json& source = summary.result["sources"]["cache"];
  EXPECT_EQ(source["steps"], 8);
  EXPECT_EQ(source["flips"], 4);
  EXPECT_EQ(source["flip_share"]["value"], 0.5);
  EXPECT_EQ(source["unmoved_steps"], 2);
  EXPECT_EQ(source["out_of_reach_steps"], 2);  // 1 > 2 · 0.25 and 3 > 2 · 0.5
  EXPECT_EQ(source["flips_out_of_reach"], 0);
  EXPECT_EQ(source["flips_by_top_two"], 3);  // not the one at 0.5, which moved up
  EXPECT_EQ(source["largest_flip_margin"], 0.5);
  EXPECT_EQ(source["largest_flip_ulps"], 4);
  // .25 + 0 + .0625 + .0625 + 0 + .25 + .015625 + .0625 = .703125
  EXPECT_DOUBLE_EQ(source["error"].get<double>(), std::sqrt(.703125 / 8));
  const Json& ulps = summary.result["ulps"]["cache"];
  EXPECT_EQ(ulps["0"]["steps"], 2);
  EXPECT_EQ(ulps["0"]["flips"], 1);
  EXPECT_EQ(ulps["up to 1"]["steps"], 2);
  EXPECT_EQ(ulps["up to 1"]["flips"], 1);
  EXPECT_EQ(ulps["up to 2"]["steps"], 1);
  EXPECT_EQ(ulps["up to 4"]["steps"], 1);
  EXPECT_EQ(ulps["up to 4"]["flips"], 1);
  EXPECT_EQ(ulps["up to 8"]["steps"], 1);
  EXPECT_EQ(ulps["up to 8"]["flips"], 0);
  EXPECT_EQ(ulps["above"]["steps"], 1);
  EXPECT_EQ(ulps["up to 16"], nullptr);
}

TEST(Boundary, LeavesOutTextsOfASourceThatOverflows) {
  StudyRecords records{{}, {text("cache", 0, {{1, .5, .5}})}};
  records.units.push_back({{"storage", 0, 0, 0}, {{"against", "x"}, {"refused", "a NaN"}}});
  const StudySummary summary = summary_of(records);
  EXPECT_EQ(summary.result["sources"]["storage"]["texts"], 0);
  EXPECT_EQ(summary.result["sources"]["storage"]["flip_share"], nullptr);
  EXPECT_EQ(summary.tables.front().notes[2], "storage: texts are missing: a NaN");
}

TEST(Boundary, SaysThatAFlipOutOfReachIsADefect) {
  const StudyRecords records{{}, {text("cache", 0, {{1, -.25, .25, true}})}};
  const StudySummary summary = summary_of(records);
  EXPECT_EQ(summary.result["sources"]["cache"]["flips_out_of_reach"], 1);
  EXPECT_NE(summary.headline.find("1 of them where no error can reach"), std::string::npos)
      << summary.headline;
}

/// Errors of size 1 at margins 0 … 4: of 2,000 steps each, as many flip as the normal law says.
/// Then the law has constant 0 and slope −1, and predicts as many flips as there are.
TEST(Boundary, FindsTheNormalLawInItsOwnFlips) {
  StudyRecords records;
  const auto normal_below = [](double x) { return .5 * std::erfc(-x / std::numbers::sqrt2); };
  constexpr int steps = 2000;
  constexpr int margins = 9;
  std::vector<HandStep> each;
  int flips = 0;
  for (int margin = 0; margin < margins; ++margin) {
    const double chance = normal_below(-margin / 2.0);
    const int flipping = static_cast<int>(std::lround(chance * steps));
    flips += flipping;
    for (int i = 0; i < steps; ++i) {
      each.push_back({margin / 2.0, i % 2 == 0 ? 1.0 : -1.0, 9, i < flipping});
    }
  }
  for (std::int64_t prompt = 0; prompt < 2; ++prompt) {
    records.units.push_back(text("cache", prompt, each));
  }
  const Json result = summary_of(records).result;
  const Json& law = result["law"]["cache"];
  EXPECT_EQ(law["steps"], 2 * margins * steps);
  EXPECT_EQ(law["flips"], 2 * flips);
  EXPECT_NEAR(law["constant"]["value"].get<double>(), 0, 5e-3);
  EXPECT_NEAR(law["slope"]["value"].get<double>(), -1, 5e-3);
  EXPECT_NEAR(law["slope"]["high"].get<double>(), law["slope"]["low"].get<double>(), 1e-6);
  EXPECT_NEAR(law["predicted_flips"].get<double>(), 2.0 * flips, 1);
  EXPECT_NEAR(law["normal_flips"].get<double>(), 2.0 * flips, 10);
  // Errors of ±1 against the normal law: the distributions are furthest apart at ±1.
  EXPECT_NEAR(law["ks_distance"].get<double>(), .5 - normal_below(-1), 1e-6);
  EXPECT_EQ(law["prompts"], 2);
  EXPECT_LT(law["brier_law"].get<double>(), law["brier_base"].get<double>());
  EXPECT_EQ(result["law"]["all"], law);
  const Json& one = result["calibration"]["up to 1"];  // margins 0.5 < 1
  EXPECT_EQ(one["steps"], 2 * steps);
  EXPECT_NEAR(one["normal_percent"].get<double>(), 100 * normal_below(-1), 1e-6);
  EXPECT_NEAR(one["observed"]["value"].get<double>(), normal_below(-1), 5e-4);
}

/// What is said of a prompt comes from the other half of the prompts: its share of flips, and its
/// size of the error.
TEST(FlipLaw, JudgesEachHalfOfThePromptsByTheOther) {
  const std::vector<LawStep> steps{{4, 0, 1, -1, true}, {4, 0, 1, 1, false}, {7, 0, 3, 2, false}};
  const auto law = flip_law(steps);
  ASSERT_TRUE(law) << law.error().message;
  EXPECT_EQ(law->steps, 3);
  EXPECT_EQ(law->flips, 1);
  const std::vector<LawPrediction>& found = law->predictions;
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].prompt, 4);
  EXPECT_EQ(found[0].margin, 0.5);  // in units of 2, the error of prompt 7
  EXPECT_EQ(found[0].error, -0.5);
  EXPECT_EQ(found[0].base, 0);
  EXPECT_TRUE(found[0].flips);
  EXPECT_EQ(found[1].error, 0.5);
  EXPECT_EQ(found[2].prompt, 7);
  EXPECT_EQ(found[2].margin, 3);
  EXPECT_EQ(found[2].error, 2);
  EXPECT_EQ(found[2].base, 0.5);
  ASSERT_TRUE(law->brier);
  EXPECT_EQ(law->brier->base, 0.416666667);  // (1 + 0 + 1/4) / 3
  EXPECT_EQ(law->brier->fitted, std::nullopt);
  EXPECT_EQ(law->expected_fitted, std::nullopt);
  ASSERT_TRUE(law->ks_by_prompt);
}

/// Five texts of KL 1 that part at steps 0 … 4, then go on with KL 10: a mean over all steps falls
/// with the flip although nothing depends on it; behind the fork there is nothing to see.
TEST(Boundary, ShowsThatAMeanOverAllStepsFallsWithTheFlip) {
  StudyRecords records;
  constexpr std::size_t length = 10;
  for (std::int64_t flip = 0; flip < 5; ++flip) {
    std::vector<HandStep> steps(length, HandStep{.margin = 1, .kl = 1});
    const auto at = static_cast<std::size_t>(flip);
    steps[at] = {0, -1, 1, true, 1};
    const double behind = flip % 2 == 0 ? 10 : 10.5;
    records.units.push_back(
        text("cache", flip, steps, flip, std::vector<double>(length - at - 1, behind)));
  }
  const Json order = summary_of(records).result["order"]["cache"];
  const Json& own = order["own_tokens"];
  EXPECT_EQ(own["early_and_late"]["median_flip"], 2);
  EXPECT_EQ(own["early_and_late"]["early_texts"], 3);
  EXPECT_EQ(own["early_and_late"]["late_texts"], 2);
  // (1 + 9 · 10)/10, (2 + 8 · 10.5)/10, (3 + 7 · 10)/10; (4 + 6 · 10.5)/10, (5 + 5 · 10)/10
  EXPECT_NEAR(own["early_and_late"]["early_kl"].get<double>(), (9.1 + 8.6 + 7.3) / 3, 1e-12);
  EXPECT_NEAR(own["early_and_late"]["late_kl"].get<double>(), (6.7 + 5.5) / 2, 1e-12);
  EXPECT_EQ(own["early_and_late"]["rank_biserial"], 1);
  EXPECT_EQ(own["early_and_late"]["p"], 0.2);  // 2 of C(5, 2) = 10 divisions
  EXPECT_LT(own["correlation"]["all"]["pearson"]["r"]["value"].get<double>(), -0.98);
  EXPECT_EQ(own["correlation"]["all"]["spearman"]["r"]["value"], -1);
  EXPECT_EQ(own["correlation"]["without_up_to_1"]["texts"], 3);
  EXPECT_EQ(own["correlation"]["without_up_to_3"]["texts"], 1);
  EXPECT_EQ(own["correlation"]["without_up_to_3"]["pearson"], nullptr);
  EXPECT_EQ(own["correlation"]["all"]["partial"], nullptr);  // all of one length
  EXPECT_EQ(order["behind_the_fork"]["early_and_late"]["early_kl"], 30.5 / 3);
  EXPECT_EQ(order["behind_the_fork"]["correlation"]["all"]["pearson"]["r"]["value"], 0);
  EXPECT_EQ(order["same_tokens"]["early_and_late"]["ratio"], 1);
  EXPECT_EQ(order["same_tokens"]["early_and_late"]["p"], nullptr);  // one value throughout
  EXPECT_EQ(order["same_tokens"]["correlation"]["all"]["pearson"], nullptr);
}

TEST(Boundary, OfEqualArmsCannotTellALaw) {
  test::FakeSetup fake(3);
  fake.setup.on = test::arm_of("live:invariant=yes");
  fake.setup.off = test::arm_of("off:invariant=yes");
  const auto study = make_boundary();
  const auto units = study->units(fake.setup);
  ASSERT_TRUE(units);
  // The engine has no formats to set.
  ASSERT_EQ(units->size(), 6U);
  EXPECT_EQ(units->front().part, "cache");
  EXPECT_EQ(units->back().part, "prompt");
  StudyRecords records;
  for (const StudyUnit& unit : *units) {
    const auto values = study->compute(fake.setup, unit);
    ASSERT_TRUE(values) << values.error().message;
    records.units.push_back({unit, *values});
  }
  const StudySummary summary = summary_of(records);
  EXPECT_EQ(summary.headline.substr(0, 5), "0 of ") << summary.headline;
  EXPECT_EQ(summary.result["sources"]["cache"]["error"], 0);
  EXPECT_EQ(summary.result["law"]["all"]["steps"], 0);
  EXPECT_EQ(summary.result["law"]["all"]["slope"], nullptr);
  EXPECT_EQ(summary.result["calibration"], Json::object());
  EXPECT_EQ(summary.result["order"], Json::object());
  const std::vector<std::string>& notes = summary.tables.front().notes;
  EXPECT_NE(notes.back().find("kv8 (keys and values stored in 8 bits); storage"), std::string::npos)
      << notes.back();
}

TEST(ErrorSources, JoinTheSettingsOfTheFirstArm) {
  test::FakeSetup fake(1);
  fake.setup.on = test::arm_of("chunked(4):kv=bfloat16,noise=3");
  const auto rows = error_sources();
  const auto kv = std::ranges::find(rows, "kv8", &ErrorSource::name);
  ASSERT_NE(kv, rows.end());
  const auto arm = arm_of(*kv, fake.setup);
  ASSERT_TRUE(arm && *arm);
  EXPECT_EQ(to_text(**arm), "chunked(4):kv=float8_e4m3fn,noise=3");
  const auto same = arm_of({"again", "off:noise=20", ""}, fake.setup);
  ASSERT_TRUE(same && *same);
  fake.setup.on = test::arm_of("live:noise=20");
  const auto none = arm_of({"again", "off:noise=20", ""}, fake.setup);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);  // the second arm under another name
}

}  // namespace
}  // namespace kvsim::experiments
