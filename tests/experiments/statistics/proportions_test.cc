// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/proportions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Wilson, EqualsStatsmodels) {
  for (const nlohmann::json& row : reference("wilson")) {
    const Count count{row["successes"], row["trials"]};
    const Result<Estimate> found = wilson_interval(count, row["confidence"]);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->value,
                static_cast<double>(count.successes) / static_cast<double>(count.trials), "share");
    expect_near(found->low, row["low"], "low", 1e-8);
    expect_near(found->high, row["high"], "high");
  }
}

// Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine
// 17(8), 1998, table I, method 3, to its four digits.
TEST(Wilson, EqualsNewcombesTable) {
  struct Row {
    Count count;
    double low, high;
  };
  for (const Row& row : std::vector<Row>{{{81, 263}, .2553, .3662},
                                         {{15, 148}, .0624, .1605},
                                         {{0, 20}, .0000, .1611},
                                         {{1, 29}, .0061, .1718}}) {
    const Result<Estimate> found = wilson_interval(row.count);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->low, row.low, 5e-5);
    EXPECT_NEAR(found->high, row.high, 5e-5);
  }
}

TEST(ClusteredShare, EqualsTheVarianceOfARatioByNumpy) {
  for (const nlohmann::json& row : reference("clustered")) {
    std::vector<Count> clusters;
    Count all;
    for (std::size_t i = 0; i < row["trials"].size(); ++i) {
      clusters.push_back({row["successes"][i], row["trials"][i]});
      all.successes += clusters.back().successes;
      all.trials += clusters.back().trials;
    }
    const Result<Estimate> found = clustered_share(clusters, row["confidence"]);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->value, static_cast<double>(all.successes) / static_cast<double>(all.trials),
                "share");
    expect_near(found->low, row["low"], "low", 2e-8);
    expect_near(found->high, row["high"], "high", 2e-8);
  }
}

TEST(ClusteredShare, OfSingleTrialsIsWilsons) {
  const std::vector<Count> singles{{1, 1}, {0, 1}, {0, 1}, {1, 1}, {0, 1}};
  const Result<Estimate> found = clustered_share(singles);
  const Result<Estimate> expected = wilson_interval({2, 5});
  ASSERT_TRUE(found && expected);
  expect_near(found->low, expected->low, "low");
  expect_near(found->high, expected->high, "high");
}

TEST(ClusteredShare, SaysWhatItCannotTake) {
  const std::vector<Count> none{{0, 0}};
  expect_error(clustered_share(none), ErrorKind::cannot_tell, "0 trials");
  expect_error(clustered_share({}), ErrorKind::cannot_tell, "0 trials");
  const std::vector<Count> bad{{1, 4}, {3, 2}};
  expect_error(clustered_share(bad), ErrorKind::usage, "3 successes of 2");
  expect_error(clustered_share(none, 0), ErrorKind::usage, "confidence 0");
}

TEST(Wilson, EndsAtExactlyNoneAndAll) {
  EXPECT_EQ(wilson_interval({0, 800})->low, 0);
  EXPECT_EQ(wilson_interval({800, 800})->high, 1);
  expect_error(wilson_interval({0, 0}), ErrorKind::cannot_tell, "0 trials");
  expect_error(wilson_interval({3, 2}), ErrorKind::usage, "3 successes of 2");
  expect_error(wilson_interval({-1, 2}), ErrorKind::usage, "-1 successes");
  expect_error(wilson_interval({1, 2}, 1), ErrorKind::usage, "confidence 1");
  expect_error(wilson_interval({1, 2}, std::nan("")), ErrorKind::usage, "confidence nan");
}

TEST(McNemarTest, EqualsTheBinomialTestOfScipy) {
  for (const nlohmann::json& row : reference("mcnemar")) {
    const Result<McNemar> found = mcnemar({row["first"], row["second"]});
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->p, row["p"], "p", 1e-8);
    ASSERT_TRUE(found->odds_ratio);
    const auto odds = [&](std::size_t i) {
      return row["odds"][i].is_null() ? infinity : row["odds"][i].get<double>();
    };
    if (odds(0) == infinity) {
      EXPECT_EQ(found->odds_ratio->value, infinity);
      EXPECT_EQ(found->odds_ratio->high, infinity);
    } else {
      expect_near(found->odds_ratio->value, odds(0), "odds", 1e-8);
      if (odds(2) != infinity) expect_near(found->odds_ratio->high, odds(2), "high", 1e-8);
    }
    expect_near(found->odds_ratio->low, odds(1), "low", 1e-8);
  }
}

// arXiv 2609.04748 reports p = .26 for 13 answers that only the cached run got right and 7 that
// only the other did.
TEST(McNemarTest, EqualsAPublishedValue) {
  EXPECT_NEAR(mcnemar({13, 7})->p, .26, .005);
  EXPECT_NEAR(mcnemar({7, 13})->p, .26, .005);
}

TEST(McNemarTest, SaysNothingWithoutDiscordantPairs) {
  EXPECT_EQ(mcnemar({0, 0})->p, 1);
  EXPECT_FALSE(mcnemar({0, 0})->odds_ratio);
  EXPECT_EQ(mcnemar({5, 5})->p, 1);
  EXPECT_EQ(mcnemar({0, 1})->p, 1);
  EXPECT_EQ(mcnemar({0, 2000})->p, 0);  // 2^−1999
  expect_error(mcnemar({-1, 2}), ErrorKind::usage, "-1 and 2");
}

std::vector<TrendGroup> groups_of(const nlohmann::json& row) {
  std::vector<TrendGroup> groups;
  for (std::size_t i = 0; i < row["scores"].size(); ++i) {
    groups.push_back({row["scores"][i], {row["successes"][i], row["trials"][i]}});
  }
  return groups;
}

TEST(CochranArmitage, EqualsTheCorrelationOfSingleObservations) {
  for (const nlohmann::json& row : reference("trend")) {
    const Result<Trend> found = cochran_armitage(groups_of(row));
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->z, row["z"], "z");
    expect_near(found->p, row["p"], "p", 1e-7);
    expect_near(found->slope, row["slope"], "slope");
  }
}

// Fleiss, "Statistical methods for rates and proportions", 1981, page 139, smokers among four
// groups of patients; R's help of prop.trend.test gives X² = 8.2249, p = 0.004132.
TEST(CochranArmitage, EqualsPublishedValues) {
  const std::vector<TrendGroup> smokers = {
      {1, {83, 86}}, {2, {90, 93}}, {3, {129, 136}}, {4, {70, 82}}};
  const Result<Trend> found = cochran_armitage(smokers);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->z * found->z, 8.2249, 5e-5);
  EXPECT_NEAR(found->p, .004132, 5e-7);
  // Shares of 80 episodes that diverge with weights of F16, Q8_0, Q4_K_M, Q3_K_M: arXiv 2609.04748
  // has p = 1.3e−8, which these scores give.
  const std::vector<TrendGroup> weights = {
      {1, {29, 80}}, {2, {49, 80}}, {3, {60, 80}}, {4, {62, 80}}};
  EXPECT_NEAR(cochran_armitage(weights)->p, 1.3e-8, 5e-10);
}

TEST(CochranArmitage, NeedsScoresAndSharesThatVary) {
  const auto trend = [](const std::vector<TrendGroup>& groups) { return cochran_armitage(groups); };
  expect_error(trend({}), ErrorKind::cannot_tell, "nothing varies");
  expect_error(trend({{1, {0, 5}}, {2, {0, 9}}}), ErrorKind::cannot_tell, "0 successes in 14");
  expect_error(trend({{1, {5, 5}}, {2, {9, 9}}}), ErrorKind::cannot_tell, "14 successes in 14");
  expect_error(trend({{.1, {1, 5}}, {.1, {2, 9}}, {3, {0, 0}}}), ErrorKind::cannot_tell,
               "one score");
  expect_error(trend({{infinity, {1, 5}}}), ErrorKind::usage, "score inf");
  expect_error(trend({{1, {6, 5}}}), ErrorKind::usage, "6 successes of 5");
  EXPECT_NEAR(trend({{1, {2, 4}}, {2, {3, 6}}})->z, 0, 1e-15);
  EXPECT_EQ(trend({{1, {2, 4}}, {2, {3, 6}}})->p, 1);
}

TEST(OddsRatioOfCounts, EqualsStatsmodels) {
  for (const nlohmann::json& row : reference("odds_ratio")) {
    const Count first{row["first"][0], row["first"][1]};
    const Count second{row["second"][0], row["second"][1]};
    const Result<OddsRatio> found = odds_ratio(first, second, row["confidence"]);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->ratio.value, row["ratio"], "ratio");
    expect_near(found->ratio.low, row["low"], "low");
    expect_near(found->ratio.high, row["high"], "high");
    const bool zero = first.successes == 0 || first.successes == first.trials ||
                      second.successes == 0 || second.successes == second.trials;
    EXPECT_EQ(found->corrected, zero);
  }
}

// Doll, Hill, "Smoking and carcinoma of the lung", BMJ 2(4682), 1950, table IV: 647 of 649 patients
// and 622 of 649 controls smoked; the ratio is (647 · 27) ÷ (622 · 2).
TEST(OddsRatioOfCounts, EqualsAPublishedExample) {
  const Result<OddsRatio> found = odds_ratio({647, 649}, {622, 649});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->ratio.value, 14.04, .005);
  expect_error(odds_ratio({0, 0}, {1, 2}), ErrorKind::cannot_tell, "0 trials");
  expect_error(odds_ratio({1, 2}, {3, 2}), ErrorKind::usage, "3 successes of 2");
}

// Cohen's own example, section 6.2: φ(.50) = 1.571, φ(.25) = 1.047.
TEST(CohensH, EqualsStatsmodelsAndCohen) {
  for (const nlohmann::json& row : reference("cohens_h")) {
    const Result<double> found = cohens_h(row["first"], row["second"]);
    ASSERT_TRUE(found);
    expect_near(*found, row["h"], "h", 1e-8);
  }
  EXPECT_NEAR(*cohens_h(.5, .25), 1.571 - 1.047, .001);
  EXPECT_EQ(*cohens_h(.3, .3), 0);
  expect_error(cohens_h(.3, 1.1), ErrorKind::usage, "share 1.1");
  expect_error(cohens_h(std::nan(""), 1), ErrorKind::usage, "share nan");
}

}  // namespace
}  // namespace kvsim::statistics
