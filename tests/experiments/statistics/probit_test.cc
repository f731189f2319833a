// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/probit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/inputs.h"
#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

TEST(Probit, EqualsStatsmodels) {
  for (const nlohmann::json& row : reference("probit")) {
    List rows;
    for (const nlohmann::json& observation : row["rows"]) {
      for (const double x : numbers(observation)) rows.push_back(x);
    }
    const List events = numbers(row["events"]);
    const List trials = numbers(row["trials"]);
    const Result<ProbitFit> fit =
        probit_regression({static_cast<std::int64_t>(row["rows"][0].size()), rows, events, trials});
    ASSERT_TRUE(fit) << fit.error().message;
    ASSERT_EQ(fit->coefficients.size(), row["coefficients"].size());
    for (std::size_t i = 0; i < fit->coefficients.size(); ++i) {
      const ProbitCoefficient& found = fit->coefficients[i];
      expect_near(found.value.value, row["coefficients"][i], "coefficient", 1e-8);
      expect_near(found.standard_error, row["errors"][i], "error", 1e-8);
      expect_near(found.value.low, row["interval"][i][0], "low", 1e-7);
      expect_near(found.value.high, row["interval"][i][1], "high", 1e-7);
      expect_near(found.p, row["p"][i], "p", 1e-6);
    }
    expect_near(fit->deviance, row["deviance"], "deviance", 1e-8);
    expect_near(fit->log_likelihood, row["likelihood"], "likelihood", 1e-8);
    expect_near(fit->null_log_likelihood, row["null"], "null", 1e-8);
    const double pseudo_r2 = 1 - row["likelihood"].get<double>() / row["null"].get<double>();
    expect_near(fit->pseudo_r2, pseudo_r2, "pseudo R²", 1e-8);
  }
}

// Bliss's beetles (Annals of Applied Biology 22(1), 1935) in Dobson, "An introduction to
// generalized linear models", 2nd edition, 2002, table 7.4: −34.94 (2.64) and 19.73 (1.48),
// deviance 10.12. The expected information gives the errors 2.648 and 1.487, as R's glm() does.
TEST(Probit, EqualsAPublishedExample) {
  const List dose = {1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839};
  const List killed = {6, 13, 18, 28, 52, 53, 61, 60};
  const List beetles = {59, 60, 62, 56, 63, 59, 62, 60};
  const Result<ProbitFit> fit = probit_regression({1, dose, killed, beetles});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->coefficients[0].value.value, -34.94, .005);
  EXPECT_NEAR(fit->coefficients[1].value.value, 19.73, .005);
  EXPECT_NEAR(fit->coefficients[0].standard_error, 2.648, .0005);
  EXPECT_NEAR(fit->coefficients[1].standard_error, 1.487, .0005);
  EXPECT_NEAR(fit->deviance, 10.12, .005);
  // The dose that kills half: where the line crosses 0.
  EXPECT_NEAR(probit_probability(*fit, List{34.935 / 19.728}), .5, .001);
}

// Counts and single observations are the same data.
TEST(Probit, GroupsEqualTheirObservations) {
  const List rows = {0, 1, 2};
  const List single_rows = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  const List events = {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0};
  const Result<ProbitFit> grouped = probit_regression({1, rows, List{1, 2, 3}, List{4, 4, 4}});
  const Result<ProbitFit> single = probit_regression({1, single_rows, events, {}});
  ASSERT_TRUE(grouped && single);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(grouped->coefficients[i].value.value, single->coefficients[i].value.value, 1e-8);
    EXPECT_NEAR(grouped->coefficients[i].standard_error, single->coefficients[i].standard_error,
                1e-8);
  }
  EXPECT_EQ(grouped->log_likelihood, single->log_likelihood);
  EXPECT_LT(grouped->deviance, single->deviance);
}

// The law of the flips: a token flips where a normal error exceeds the margin, so the coefficient
// of the margin is −1 ÷ deviation.
TEST(Probit, FindsTheDeviationBehindFlips) {
  constexpr double deviation = .02;
  List margins;
  List flips;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double margin = .1 * uniform(11, 0, i);
    margins.push_back(margin);
    flips.push_back(deviation * normal(11, 1, i) > margin ? 1 : 0);
  }
  const Result<ProbitFit> fit = probit_regression({1, margins, flips, {}});
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->coefficients[0].value.low, 0);
  EXPECT_GT(fit->coefficients[0].value.high, 0);
  EXPECT_LT(fit->coefficients[1].value.low, -1 / deviation);
  EXPECT_GT(fit->coefficients[1].value.high, -1 / deviation);
  EXPECT_NEAR(probit_probability(*fit, List{0}), .5, .05);
  EXPECT_LT(fit->coefficients[1].p, 1e-20);
}

// Moving and scaling a predictor moves and scales its coefficients.
TEST(Probit, DoesNotDependOnUnits) {
  const List near = {0, 1, 2, 3, 4, 5};
  List far;
  for (const double x : near) far.push_back(1e6 + 1e-3 * x);
  const List events = {0, 1, 0, 1, 0, 1};
  const Result<ProbitFit> a = probit_regression({1, near, events, {}});
  const Result<ProbitFit> b = probit_regression({1, far, events, {}});
  ASSERT_TRUE(a && b);
  expect_near(b->coefficients[1].value.value, 1e3 * a->coefficients[1].value.value, "slope", 1e-6);
  expect_near(b->coefficients[1].p, a->coefficients[1].p, "p", 1e-6);
  EXPECT_NEAR(a->log_likelihood, b->log_likelihood, 1e-6);
}

TEST(Probit, SaysWhatItCannotTell) {
  const List rows = {0, 1, 2, 3};
  const auto fit = [](std::int64_t predictors, const List& x, const List& events,
                      const List& trials) {
    return probit_regression({predictors, x, events, trials});
  };
  expect_error(fit(1, rows, {0, 0, 1, 1}, {}), ErrorKind::cannot_tell, "separate");
  expect_error(fit(1, {0, 1, 1, 2}, {0, 0, 1, 1}, {}), ErrorKind::cannot_tell, "separate");
  expect_error(fit(1, rows, {0, 0, 0, 0}, {}), ErrorKind::cannot_tell, "0 events in 4");
  expect_error(fit(1, rows, {2, 2, 2, 2}, {2, 2, 2, 2}), ErrorKind::cannot_tell, "8 events in 8");
  expect_error(fit(1, {5, 5, 5, 5}, {0, 1, 0, 1}, {}), ErrorKind::cannot_tell, "1 is constant");
  expect_error(fit(2, {0, 0, 1, 2, 2, 4, 3, 6}, {0, 1, 0, 1}, {}), ErrorKind::cannot_tell,
               "follows");
  expect_error(fit(4, rows, {1}, {}), ErrorKind::cannot_tell, "5 coefficients on 1");
  expect_error(fit(1, rows, {0, 1}, {}), ErrorKind::usage, "2 rows of 1");
  expect_error(fit(0, {}, {}, {}), ErrorKind::usage, "0 rows of 0");
  expect_error(fit(1, rows, {0, 1, 2, 0}, {}), ErrorKind::usage, "observation 3: 2 events of 1");
  expect_error(fit(1, {0, 1, 2, std::nan("")}, {0, 1, 1, 0}, {}), ErrorKind::usage, "predictors");
}

}  // namespace
}  // namespace kvsim::statistics
